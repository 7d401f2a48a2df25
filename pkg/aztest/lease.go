package aztest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lease is the lease of a blob or a container. Its state follows from the times, so nothing has to run when it expires.
type lease struct {
	id       string
	duration time.Duration // negative: infinite
	until    time.Time     // when a fixed lease expires
	breaks   time.Time     // when it is or was broken; zero if it was not
}

const (
	leaseAvailable = "available"
	leaseLeased    = "leased"
	leaseExpired   = "expired"
	leaseBreaking  = "breaking"
	leaseBroken    = "broken"
)

func (l *lease) state() string {
	switch t := time.Now(); {
	case l.id == "":
		return leaseAvailable
	case !l.breaks.IsZero() && t.Before(l.breaks):
		return leaseBreaking
	case !l.breaks.IsZero():
		return leaseBroken
	case l.duration >= 0 && !t.Before(l.until):
		return leaseExpired
	default:
		return leaseLeased
	}
}

// active reports whether the lease excludes other writers.
func (l *lease) active() bool {
	s := l.state()
	return s == leaseLeased || s == leaseBreaking
}

// forgetIfOver makes a lease that has ended available: after a modification its holder cannot renew it.
func (l *lease) forgetIfOver() {
	if !l.active() {
		*l = lease{}
	}
}

func (l *lease) status() string {
	if l.active() {
		return "locked"
	}
	return "unlocked"
}

// kind returns the service's name for the duration of the lease, or "" if it is not leased.
func (l *lease) kind() string {
	switch {
	case l.state() != leaseLeased:
		return ""
	case l.duration < 0:
		return "infinite"
	}
	return "fixed"
}

func (l *lease) describe(a *answer) {
	a.set("x-ms-lease-state", l.state()).set("x-ms-lease-status", l.status()).set("x-ms-lease-duration", l.kind())
}

var leaseID = regexp.MustCompile(`^\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?$`)

// sameID compares lease ids by value, as the service does: case does not matter.
func sameID(a, b string) bool { return strings.EqualFold(a, b) }

func newLeaseID() string {
	var b [16]byte
	rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// operate carries out a lease operation (REST: "Lease Blob", "Lease Container": the tables of outcomes by state). It
// does not change the version of the resource.
func (l *lease) operate(r *request) *answer {
	id, proposed := r.header.Get("X-Ms-Lease-Id"), r.header.Get("X-Ms-Proposed-Lease-Id")
	for _, given := range []string{id, proposed} {
		if given != "" && !leaseID.MatchString(strings.ToLower(given)) {
			return invalidHeader("x-ms-lease-id or x-ms-proposed-lease-id", given) // an emulator accepts any string
		}
	}
	switch action := r.header.Get("X-Ms-Lease-Action"); action {
	case "acquire":
		return l.acquire(proposed, r.header.Get("X-Ms-Lease-Duration"))
	case "renew":
		return l.renew(id)
	case "change":
		return l.change(id, proposed)
	case "release":
		return l.release(id)
	case "break":
		return l.break_(r.header.Get("X-Ms-Lease-Break-Period"))
	default:
		return invalidHeader("x-ms-lease-action", action)
	}
}

func invalidHeader(name, value string) *answer {
	return fail(http.StatusBadRequest, "InvalidHeaderValue", fmt.Sprintf("The value %q provided for the header %s is not in the correct format.", value, name))
}

func (l *lease) acquire(proposed, duration string) *answer {
	seconds, err := strconv.Atoi(duration)
	if err != nil || seconds != -1 && (seconds < 15 || seconds > 60) {
		return invalidHeader("x-ms-lease-duration", duration)
	}
	if proposed == "" {
		proposed = newLeaseID()
	}
	switch state := l.state(); {
	case state == leaseBreaking && sameID(l.id, proposed):
		return fail(http.StatusConflict, "LeaseIsBreakingAndCannotBeAcquired", "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.")
	case l.active() && !sameID(l.id, proposed):
		return fail(http.StatusConflict, "LeaseAlreadyPresent", "There is already a lease present.")
	}
	*l = lease{id: proposed, duration: time.Duration(seconds) * time.Second}
	l.until = time.Now().Add(l.duration)
	return ok(http.StatusCreated).set("x-ms-lease-id", l.id)
}

func (l *lease) renew(id string) *answer {
	switch state := l.state(); {
	case state == leaseAvailable || !sameID(l.id, id):
		return leaseMismatch()
	case state == leaseBreaking || state == leaseBroken:
		return fail(http.StatusConflict, "LeaseIsBrokenAndCannotBeRenewed", "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.")
	}
	// An expired lease can be renewed if the blob has not been leased or modified since; touch ensures that. Another id
	// cannot renew it, although an emulator allows that.
	l.until = time.Now().Add(l.duration)
	return ok(http.StatusOK).set("x-ms-lease-id", l.id)
}

func (l *lease) change(id, proposed string) *answer {
	switch state := l.state(); {
	case proposed == "":
		return invalidHeader("x-ms-proposed-lease-id", proposed)
	case state == leaseAvailable || state == leaseExpired || state == leaseBroken:
		return fail(http.StatusConflict, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the blob.")
	case !sameID(l.id, id) && !sameID(l.id, proposed): // a repeated change finds the new id and succeeds
		return leaseMismatch()
	case state == leaseBreaking:
		return fail(http.StatusConflict, "LeaseIsBreakingAndCannotBeChanged", "The lease ID matched, but the lease is currently in breaking state and cannot be changed.")
	}
	l.id = proposed
	return ok(http.StatusOK).set("x-ms-lease-id", l.id)
}

func (l *lease) release(id string) *answer {
	if l.state() == leaseAvailable || !sameID(l.id, id) {
		return leaseMismatch()
	}
	*l = lease{}
	return ok(http.StatusOK)
}

func (l *lease) break_(period string) *answer {
	state := l.state()
	if state == leaseAvailable {
		return fail(http.StatusConflict, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the blob.")
	}
	remaining, natural := time.Duration(0), true
	switch {
	case state == leaseBreaking:
		remaining = time.Until(l.breaks)
	case state == leaseLeased && l.duration >= 0:
		remaining = time.Until(l.until)
	case state == leaseLeased && period != "":
		remaining = time.Minute // an infinite lease can be given up to a minute
	}
	if period != "" {
		seconds, err := strconv.Atoi(period)
		if err != nil || seconds < 0 || seconds > 60 {
			return invalidHeader("x-ms-lease-break-period", period)
		}
		if given := time.Duration(seconds) * time.Second; given <= remaining { // a break never extends the lease
			remaining, natural = given, false
		}
	}
	if state == leaseLeased || state == leaseBreaking {
		l.breaks = time.Now().Add(remaining)
	} else if l.breaks.IsZero() {
		l.breaks = time.Now()
	}
	if natural {
		// The rest of a lease is rounded down, and some of it has always passed: 15 s show as 14 (all recordings).
		remaining = max(0, remaining-1)
	}
	return ok(http.StatusAccepted).set("x-ms-lease-time", strconv.Itoa(int(remaining/time.Second)))
}

func leaseMismatch() *answer {
	return fail(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the blob.")
}

// check refuses a request with a wrong lease id. A write needs the id of an active lease; a read may give one. on is
// Blob or Container.
func (l *lease) check(r *request, on string, needed bool) *answer {
	id := r.header.Get("X-Ms-Lease-Id")
	switch {
	case id != "" && !leaseID.MatchString(strings.ToLower(id)):
		return invalidHeader("x-ms-lease-id", id) // checked before the state of the lease
	case id == "" && needed && l.active():
		return fail(http.StatusPreconditionFailed, "LeaseIdMissing", "There is currently a lease on the resource and no lease ID was specified in the request.")
	case id == "" || l.active() && sameID(l.id, id):
		return nil
	case l.active():
		return fail(http.StatusPreconditionFailed, "LeaseIdMismatchWith"+on+"Operation", "The lease ID specified did not match the lease ID for the resource.")
	case l.state() != leaseAvailable && sameID(l.id, id):
		// It has expired, or its break has elapsed. An emulator responds with LeaseNotPresent.
		return fail(http.StatusPreconditionFailed, "LeaseLost", "A lease ID was specified, but the lease for the resource has expired.")
	default:
		return fail(http.StatusPreconditionFailed, "LeaseNotPresentWith"+on+"Operation", "There is currently no lease on the resource.")
	}
}
