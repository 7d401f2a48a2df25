package storage

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// AccountName is the name of every account.
const AccountName = "devstoreaccount1"

// Account is what the services of an account share.
type Account struct {
	Options Limits
	Etags   uint64
	Rng     *rand.Rand
}

// Limits are the settings of an account.
type Limits struct {
	Deletion    time.Duration // how long a deleted name stays taken
	SharedETags time.Duration // see Options.SharedPageETags
	Anonymous   bool          // every request is authorized
}

// NewAccount returns an empty account. Its random numbers are not those of the faults.
func NewAccount(o Limits, seed uint64) *Account {
	return &Account{Options: o, Rng: rand.New(rand.NewPCG(seed, 2))}
}

// NewETag returns a new ETag, in the form that the Blob service uses.
func (a *Account) NewETag() string {
	a.Etags++
	return `"0x8DE` + fmt.Sprintf("%012X", a.Etags*2654435761%(1<<48)) + `"`
}
