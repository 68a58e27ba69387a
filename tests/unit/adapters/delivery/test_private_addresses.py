import pytest

from aiki_push.adapters.delivery.private_addresses import private_address, resolve_host

PUBLIC = "93.184.216.34"


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "172.15.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_may_be_pushed_to(address: str) -> None:
    assert private_address("orders.example.com", lambda _: [PUBLIC, address]) is None


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "127.0.0.1",
        "127.8.8.8",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:224.0.0.1",
    ],
)
def test_a_host_with_one_address_that_is_not_public_may_not_be_pushed_to(address: str) -> None:
    assert private_address("orders.example.com", lambda _: [PUBLIC, address]) == address


def test_the_host_is_the_one_that_is_asked_for() -> None:
    addresses = {"inside.example.com": ["10.0.0.1"], "outside.example.com": [PUBLIC]}

    assert private_address("inside.example.com", addresses.__getitem__) == "10.0.0.1"
    assert private_address("outside.example.com", addresses.__getitem__) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1"])
def test_every_spelling_that_the_system_takes_for_this_machine_is_seen_as_such(host: str) -> None:
    assert private_address(host, resolve_host) == "127.0.0.1"


def test_a_host_that_no_name_server_can_be_asked_for_is_an_error_of_its_own_kind() -> None:
    with pytest.raises(UnicodeError):
        private_address("a" * 64 + ".example.com", resolve_host)
