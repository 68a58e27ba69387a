
import sys, time, logging, re
from collections import Counter
from tests.simulation.simulation import simulate, Failure
logging.disable(logging.CRITICAL)
first, last = int(sys.argv[1]), int(sys.argv[2])
t=time.time()
c=Counter(); n=0; steps=0
for seed in range(first, last):
    n+=1
    try:
        s = simulate(seed)
        steps += s.schedule.steps
        for line in s.schedule.trace:
            if 'ends as' in line: c['segment '+line.split('ends as ')[1]]+=1
            elif 'dies' in line: c['dies']+=1
            elif 'freezes' in line: c['freezes']+=1
            elif 'could not' in line: c['could not ' + re.sub(r'[^a-zA-Z ]','',line.split('could not')[1])[-40:]]+=1
            elif 'executes' in line: c['executes']+=1
            elif 'lost:' in line: c['lost message']+=1
        for st in s.audit.stored.values():
            c[st.run.workflow+' '+st.run.state.status]+=1
            for tr in st.transitions: c['-> '+str(tr.state.status)+' '+str(getattr(tr.state,'reason',''))]+=1
    except Failure as f:
        print("FAILED", f.seed, f.steps, f.violation)
        if len(sys.argv)>3:
          print("\n".join(f.trace[-int(sys.argv[3]):]))
          break
print(n, 'seeds', steps, 'steps', round(time.time()-t,1),'s')
for k in sorted(c): print('   ',k,c[k])
