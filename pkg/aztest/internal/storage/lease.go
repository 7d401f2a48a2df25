package storage

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Lease is the lease of a blob or a container. Its state follows from the times, so nothing has to run when it expires.
type Lease struct {
	id       string
	Duration time.Duration // negative: infinite
	until    time.Time     // when a fixed lease expires
	breaks   time.Time     // when it is or was broken; zero if it was not
}

const (
	leaseAvailable = "available"
	LeaseLeased    = "leased"
	leaseExpired   = "expired"
	leaseBreaking  = "breaking"
	leaseBroken    = "broken"
)

// State returns the state at this moment.
func (l *Lease) State() string {
	switch t := time.Now(); {
	case l.id == "":
		return leaseAvailable
	case !l.breaks.IsZero() && t.Before(l.breaks):
		return leaseBreaking
	case !l.breaks.IsZero():
		return leaseBroken
	case l.Duration >= 0 && !t.Before(l.until):
		return leaseExpired
	default:
		return LeaseLeased
	}
}

// Active reports whether the lease excludes other writers.
func (l *Lease) Active() bool {
	s := l.State()
	return s == LeaseLeased || s == leaseBreaking
}

// ForgetIfOver makes a lease that has ended available: after a modification its holder cannot renew it.
func (l *Lease) ForgetIfOver() {
	if !l.Active() {
		*l = Lease{}
	}
}

// Status returns locked or unlocked.
func (l *Lease) Status() string {
	if l.Active() {
		return "locked"
	}
	return "unlocked"
}

// Kind returns the service's name for the duration of the lease, or "" if it is not leased.
func (l *Lease) Kind() string {
	switch {
	case l.State() != LeaseLeased:
		return ""
	case l.Duration < 0:
		return "infinite"
	}
	return "fixed"
}

// Describe adds the headers that show the lease.
func (l *Lease) Describe(a *Answer) {
	a.Set("x-ms-lease-state", l.State()).Set("x-ms-lease-status", l.Status()).Set("x-ms-lease-duration", l.Kind())
}

var LeaseID = regexp.MustCompile(`^\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?$`)

// sameID compares lease ids by value, as the service does: case does not matter.
func sameID(a, b string) bool { return strings.EqualFold(a, b) }

func newLeaseID() string {
	var b [16]byte
	rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Operate carries out a lease operation (REST: "Lease Blob", "Lease Container": the tables of outcomes by state). It
// does not change the version of the resource.
func (l *Lease) Operate(r *Request) *Answer {
	id, proposed := r.Header.Get("X-Ms-Lease-Id"), r.Header.Get("X-Ms-Proposed-Lease-Id")
	for _, given := range []string{id, proposed} {
		if given != "" && !LeaseID.MatchString(strings.ToLower(given)) {
			return InvalidHeader("x-ms-lease-id or x-ms-proposed-lease-id", given) // an emulator accepts any string
		}
	}
	switch action := r.Header.Get("X-Ms-Lease-Action"); action {
	case "acquire":
		return l.acquire(proposed, r.Header.Get("X-Ms-Lease-Duration"))
	case "renew":
		return l.renew(id)
	case "change":
		return l.change(id, proposed)
	case "release":
		return l.release(id)
	case "break":
		return l.break_(r.Header.Get("X-Ms-Lease-Break-Period"))
	default:
		return InvalidHeader("x-ms-lease-action", action)
	}
}

// InvalidHeader is the response to a malformed header.
func InvalidHeader(name, value string) *Answer {
	return Fail(http.StatusBadRequest, "InvalidHeaderValue", fmt.Sprintf("The value %q provided for the header %s is not in the correct format.", value, name))
}

func (l *Lease) acquire(proposed, duration string) *Answer {
	seconds, err := strconv.Atoi(duration)
	if err != nil || seconds != -1 && (seconds < 15 || seconds > 60) {
		return InvalidHeader("x-ms-lease-duration", duration)
	}
	if proposed == "" {
		proposed = newLeaseID()
	}
	switch state := l.State(); {
	case state == leaseBreaking && sameID(l.id, proposed):
		return Fail(http.StatusConflict, "LeaseIsBreakingAndCannotBeAcquired", "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.")
	case l.Active() && !sameID(l.id, proposed):
		return Fail(http.StatusConflict, "LeaseAlreadyPresent", "There is already a lease present.")
	}
	*l = Lease{id: proposed, Duration: time.Duration(seconds) * time.Second}
	l.until = time.Now().Add(l.Duration)
	return OK(http.StatusCreated).Set("x-ms-lease-id", l.id)
}

func (l *Lease) renew(id string) *Answer {
	switch state := l.State(); {
	case state == leaseAvailable || !sameID(l.id, id):
		return leaseMismatch()
	case state == leaseBreaking || state == leaseBroken:
		return Fail(http.StatusConflict, "LeaseIsBrokenAndCannotBeRenewed", "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.")
	}
	// An expired lease can be renewed if the blob has not been leased or modified since; touch ensures that. Another id
	// cannot renew it, although an emulator allows that.
	l.until = time.Now().Add(l.Duration)
	return OK(http.StatusOK).Set("x-ms-lease-id", l.id)
}

func (l *Lease) change(id, proposed string) *Answer {
	switch state := l.State(); {
	case proposed == "":
		return InvalidHeader("x-ms-proposed-lease-id", proposed)
	case state == leaseAvailable || state == leaseExpired || state == leaseBroken:
		return Fail(http.StatusConflict, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the blob.")
	case !sameID(l.id, id) && !sameID(l.id, proposed): // a repeated change finds the new id and succeeds
		return leaseMismatch()
	case state == leaseBreaking:
		return Fail(http.StatusConflict, "LeaseIsBreakingAndCannotBeChanged", "The lease ID matched, but the lease is currently in breaking state and cannot be changed.")
	}
	l.id = proposed
	return OK(http.StatusOK).Set("x-ms-lease-id", l.id)
}

func (l *Lease) release(id string) *Answer {
	if l.State() == leaseAvailable || !sameID(l.id, id) {
		return leaseMismatch()
	}
	*l = Lease{}
	return OK(http.StatusOK)
}

func (l *Lease) break_(period string) *Answer {
	state := l.State()
	if state == leaseAvailable {
		return Fail(http.StatusConflict, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the blob.")
	}
	remaining, natural := time.Duration(0), true
	switch {
	case state == leaseBreaking:
		remaining = time.Until(l.breaks)
	case state == LeaseLeased && l.Duration >= 0:
		remaining = time.Until(l.until)
	case state == LeaseLeased && period != "":
		remaining = time.Minute // an infinite lease can be given up to a minute
	}
	if period != "" {
		seconds, err := strconv.Atoi(period)
		if err != nil || seconds < 0 || seconds > 60 {
			return InvalidHeader("x-ms-lease-break-period", period)
		}
		if given := time.Duration(seconds) * time.Second; given <= remaining { // a break never extends the lease
			remaining, natural = given, false
		}
	}
	if state == LeaseLeased || state == leaseBreaking {
		l.breaks = time.Now().Add(remaining)
	} else if l.breaks.IsZero() {
		l.breaks = time.Now()
	}
	if natural {
		// The rest of a lease is rounded down, and some of it has always passed: 15 s show as 14 (all recordings).
		remaining = max(0, remaining-1)
	}
	return OK(http.StatusAccepted).Set("x-ms-lease-time", strconv.Itoa(int(remaining/time.Second)))
}

func leaseMismatch() *Answer {
	return Fail(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the blob.")
}

// Check refuses a request with a wrong lease id. A write needs the id of an active lease; a read may give one. on is
// Blob or Container.
func (l *Lease) Check(r *Request, on string, needed bool) *Answer {
	id := r.Header.Get("X-Ms-Lease-Id")
	switch {
	case id != "" && !LeaseID.MatchString(strings.ToLower(id)):
		return InvalidHeader("x-ms-lease-id", id) // checked before the state of the lease
	case id == "" && needed && l.Active():
		return Fail(http.StatusPreconditionFailed, "LeaseIdMissing", "There is currently a lease on the resource and no lease ID was specified in the request.")
	case id == "" || l.Active() && sameID(l.id, id):
		return nil
	case l.Active():
		return Fail(http.StatusPreconditionFailed, "LeaseIdMismatchWith"+on+"Operation", "The lease ID specified did not match the lease ID for the resource.")
	case l.State() != leaseAvailable && sameID(l.id, id):
		// It has expired, or its break has elapsed. An emulator responds with LeaseNotPresent.
		return Fail(http.StatusPreconditionFailed, "LeaseLost", "A lease ID was specified, but the lease for the resource has expired.")
	default:
		return Fail(http.StatusPreconditionFailed, "LeaseNotPresentWith"+on+"Operation", "There is currently no lease on the resource.")
	}
}
