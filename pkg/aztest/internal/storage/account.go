package storage

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// AccountName is the name of an account that is not given another one.
const AccountName = "devstoreaccount1"

// Account is what the services of an account share.
type Account struct {
	Name     string
	Endpoint string // of the service that the current request was sent to
	Options  Limits
	Etags    uint64
	Rng      *rand.Rand
}

// Limits are the settings of an account.
type Limits struct {
	Deletion    time.Duration // how long a deleted name stays taken
	SharedETags time.Duration // see Options.SharedPageETags
	Anonymous   bool          // every request is authorized
}

// NewAccount returns an empty account of a name. Its random numbers are not those of the faults.
func NewAccount(name string, o Limits, seed uint64) *Account {
	return &Account{Name: name, Options: o, Rng: rand.New(rand.NewPCG(seed, 2))}
}

// NewETag returns a new ETag, in the form that the Blob service uses.
func (a *Account) NewETag() string {
	a.Etags++
	return `"0x8DE` + fmt.Sprintf("%012X", a.Etags*2654435761%(1<<48)) + `"`
}
