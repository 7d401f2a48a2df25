package aztest

import "time"

// bucket is a limit of requests: it fills with Rate tokens a second, and each request that passes takes one.
type bucket struct {
	tokens float64
	at     time.Time // when tokens was right
}

// passes reports whether a request is within the Rate of its resource. It is called with the Injector's mu held.
func (f *activeFault) passes(r *Request) bool {
	key := ""
	if f.Per != nil {
		key = f.Per(r)
	}
	burst := max(1, f.Rate/10)
	b := f.limits[key]
	if b == nil {
		if f.limits == nil {
			f.limits = map[string]*bucket{}
		}
		b = &bucket{tokens: burst, at: r.At}
		f.limits[key] = b
	}
	b.tokens = min(burst, b.tokens+max(0, r.At.Sub(b.at).Seconds())*f.Rate)
	b.at = r.At
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
