import sys, time
from tests.simulation.simulation import simulate, Failure
first, last = int(sys.argv[1]), int(sys.argv[2])
t=time.time()
for seed in range(first, last):
    try:
        s = simulate(seed)
        print(seed, s.schedule.steps, round(s.schedule.now_us/1e6), [x.run.state.status for x in s.audit.stored.values()], round(time.time()-t,2), flush=True)
    except Failure as f:
        print("FAILED", f.seed, f.steps, f.violation)
        print("\n".join(f.trace[-int(sys.argv[3]) if len(sys.argv)>3 else -40:]))
        break
