// Command rollcall runs and looks after a pool of SIP registrars that behaves like
// one registrar that doesn't go away. This package only reads what the user wants,
// calls the package that does it, and prints the outcome.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
