package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Random faults over a pool with phones of all kinds: nothing that was acknowledged is lost,
// nothing that was removed comes back, and when the faults end all resumes by itself.
// One seed: -seed N. Many: -storms N.
func TestStorm(t *testing.T) {
	first, n := uint64(1), 6
	switch {
	case *seedFlag != 0:
		first, n = *seedFlag, 1
	case *stormFlag > 0:
		n = *stormFlag
	case testing.Short():
		n = 3
	}
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, seed, 25) })
		})
	}
}

// recoverWithin is how long it may take after the last fault until every client has been
// served: a transaction that began in the storm may take its 32 s to fail.
const recoverWithin = 45 * time.Second

func storm(t *testing.T, seed uint64, steps int) {
	p := New(t, stormConfig(seed))
	p.replay = fmt.Sprintf("-run '^TestStorm$' -seed %d", seed)
	p.Start()
	p.stormPhones()
	p.Recover(10 * time.Second)
	NewStorm(p).Run(steps)
	if p.failed() {
		return
	}
	p.CheckAll(20 * time.Second)
	p.Recover(recoverWithin)
	p.CheckAll(time.Second)
}
