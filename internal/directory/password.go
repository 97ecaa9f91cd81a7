package directory

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// NewPassword returns a random password that can be read out over the phone:
// four groups of two syllables, 50 bits.
func NewPassword() string {
	const consonants, vowels = "bdfghjklmnprstvz", "aeiou"
	var b strings.Builder
	for i := range 8 {
		if i > 0 && i%2 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(consonants[random(len(consonants))])
		b.WriteByte(vowels[random(len(vowels))])
	}
	return b.String()
}

// random returns an even choice out of n.
func random(n int) int {
	i, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return int(i.Int64())
}
