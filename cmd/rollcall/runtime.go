package main

import (
	"os"
	"runtime"
)

// shareProcessors lets one of several Front Ends of this machine run on its share of the
// processors, at least one. More would only make their threads wake each other up: it costs
// each of them about a tenth. GOMAXPROCS in the environment says otherwise.
func shareProcessors(frontEnds int) {
	if os.Getenv("GOMAXPROCS") == "" && frontEnds > 1 {
		runtime.GOMAXPROCS((runtime.NumCPU() + frontEnds - 1) / frontEnds)
	}
}
