package idempotent

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
)

// The service refuses to create a blob that is leased with LeaseIdMissing, and not with BlobAlreadyExists.
func TestALeasedBodyIsThere(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendFor(k, "m", 48*time.Hour)
		p := r.process()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusPreconditionFailed, Code: "LeaseIdMissing", Match: aztest.Op("Put Blob"), Count: 1})
		r.service.Reset()
		r.sendFor(r.claims(p.wire), "m", time.Hour) // the body is kept for longer than that
		if n := r.ops(); n["Get Blob Properties"] != 1 || n["Put Blob"] != 0 || len(r.blobs()) != 1 {
			t.Errorf("%v, %q", n, r.blobs())
		}
		// A body that has to be kept for longer cannot be written: this is reported, and not tried for ever.
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusPreconditionFailed, Code: "LeaseIdMissing", Match: aztest.Op("Put Blob")})
		producer, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: r.claims(p.wire)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := producer.Send(t.Context(), Outgoing{ID: "m", Body: noise(70_000), TTL: 96 * time.Hour}); err == nil {
			t.Error("sent although the body is not kept for as long as its message")
		}
	})
}

// noETag is an intermediary that drops the ETag of responses.
type noETag struct{ policy.Transporter }

func (n noETag) Do(r *http.Request) (*http.Response, error) {
	resp, err := n.Transporter.Do(r)
	if err == nil {
		for name := range resp.Header {
			if http.CanonicalHeaderKey(name) == "Etag" {
				delete(resp.Header, name)
			}
		}
	}
	return resp, err
}

// A write on the condition of an ETag that is not known would have no condition.
func TestABodyIsNotOverwrittenWithoutACondition(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendFor(k, "m", 48*time.Hour)
		producer, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: r.claims(noETag{r.service})})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		_, err = producer.Send(t.Context(), Outgoing{ID: "m", Body: noise(70_000), TTL: 96 * time.Hour})
		for _, q := range r.service.Log() {
			if q.Op == "Put Blob" && q.Header.Get("If-None-Match") == "" && q.Header.Get("If-Match") == "" {
				t.Errorf("written without a condition: %v", q)
			}
		}
		if n := r.ops(); err == nil || n["Put Blob"] != 1 || n["Put Message"] != 0 {
			t.Errorf("%v, %v", err, n)
		}
	})
}
