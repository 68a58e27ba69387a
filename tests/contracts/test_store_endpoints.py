import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import DeleteEndpoint, SaveEndpoint
from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName
from aiki_push.domain.errors import NotFound
from aiki_push.testing import FAKE_NOW


def endpoint(name: str, *, namespace: str = "default", url: str = "https://example.com/aiki") -> Endpoint:
    return Endpoint(
        namespace=namespace,
        id=name,
        url=url,
        workflows=(WorkflowVersionName(name="orders", version="1.0.0"),),
        pools=("gpu",),
        audience="billing",
        secret="whsec_c2VjcmV0",
        created_at=FAKE_NOW,
        updated_at=FAKE_NOW,
    )


def test_an_endpoint_is_read_as_it_was_saved(store: SingleTableStore) -> None:
    store.commit(SaveEndpoint(endpoint("a")))
    assert store.endpoint("default", "a") == endpoint("a")


def test_saving_an_endpoint_again_replaces_it(store: SingleTableStore) -> None:
    store.commit(SaveEndpoint(endpoint("a")))
    store.commit(SaveEndpoint(endpoint("a", url="https://example.org")))
    assert store.endpoints("default") == (endpoint("a", url="https://example.org"),)


def test_endpoints_of_a_namespace_come_by_id(store: SingleTableStore) -> None:
    for name in ("b", "a:1", "-a", "Z", "_z", "0.9"):
        store.commit(SaveEndpoint(endpoint(name)))
    store.commit(SaveEndpoint(endpoint("c", namespace="other")))
    assert [one.id for one in store.endpoints("default")] == ["-a", "0.9", "Z", "_z", "a:1", "b"]
    assert store.endpoints("nobody") == ()


def test_a_deleted_endpoint_is_not_found_and_can_be_deleted_again(store: SingleTableStore) -> None:
    store.commit(SaveEndpoint(endpoint("a")))
    for _ in range(2):
        store.commit(DeleteEndpoint("default", "a"))
    with pytest.raises(NotFound):
        store.endpoint("default", "a")


def test_an_endpoint_of_another_namespace_is_not_found(store: SingleTableStore) -> None:
    store.commit(SaveEndpoint(endpoint("a", namespace="other")))
    with pytest.raises(NotFound):
        store.endpoint("default", "a")


def test_endpoints_are_saved_and_deleted_in_one_commit(store: SingleTableStore) -> None:
    store.commit(SaveEndpoint(endpoint("a")))
    store.commit(DeleteEndpoint("default", "a"), SaveEndpoint(endpoint("b")))
    assert store.endpoints("default") == (endpoint("b"),)
