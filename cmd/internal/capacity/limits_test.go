package capacity

// The service's stated targets, in requests a second (Microsoft Learn: "Scalability and performance targets" for Blob, Table
// and Queue storage and for standard storage accounts).
const (
	PerBlob      = 500
	PerPartition = 2000  // entities of 1 KiB
	PerQueue     = 2000  // messages of 1 KiB
	PerAccount   = 20000 // that of the smaller regions
)

// Prices in dollars for 10,000 operations. They are assumptions, of the size of the list prices for locally redundant storage
// in the hot tier; storage, transfer and compute come on top.
const (
	BlobWrites = 0.05
	BlobOthers = 0.004 // reads, HEAD requests and leases
	Entities   = 0.00036
	Messages   = 0.004
)

// PerMinute is how many operations each client makes a minute.
const PerMinute = 1

// Trip is the round trip of the simulated service, in milliseconds.
const Trip = 5

// secondsAMonth is 30 days.
const secondsAMonth = 30 * 24 * 3600

// Bill is what one operation sends: requests by what they cost.
type Bill struct{ Writes, Others, Entities, Messages float64 }

// Requests returns the number of requests.
func (b Bill) Requests() float64 { return b.Writes + b.Others + b.Entities + b.Messages }

// Dollars returns what the requests cost.
func (b Bill) Dollars() float64 {
	return (b.Writes*BlobWrites + b.Others*BlobOthers + b.Entities*Entities + b.Messages*Messages) / 10000
}

// Plus returns the sum of two bills.
func (b Bill) Plus(c Bill) Bill {
	return Bill{b.Writes + c.Writes, b.Others + c.Others, b.Entities + c.Entities, b.Messages + c.Messages}
}

// Times returns a multiple of a bill.
func (b Bill) Times(n float64) Bill {
	return Bill{n * b.Writes, n * b.Others, n * b.Entities, n * b.Messages}
}
