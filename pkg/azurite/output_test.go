package azurite

import (
	"strings"
	"testing"
	"testing/iotest"
)

const started = `Azurite Blob service is starting at http://127.0.0.1:0
Azurite Blob service is successfully listening at http://127.0.0.1:36231
Azurite Queue service is starting at http://127.0.0.1:0
Azurite Queue service is successfully listening at http://127.0.0.1:36232
Azurite Table service is starting at http://127.0.0.1:0
Azurite Table service is successfully listening at http://127.0.0.1:36233
`

func TestPortsAreFoundHoweverTheOutputIsCut(t *testing.T) {
	o := newOutput()
	r := iotest.OneByteReader(strings.NewReader(started + started))
	buf := make([]byte, 8)
	for {
		n, err := r.Read(buf)
		if err != nil {
			break
		}
		if _, err := o.Write(buf[:n]); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-o.ready:
	default:
		t.Fatal("not ready after all three lines")
	}
	for service, want := range map[string]string{"Blob": "36231", "Queue": "36232", "Table": "36233"} {
		if got := o.urls[service]; got != "http://127.0.0.1:"+want {
			t.Errorf("%s is at %s, want port %s", service, got, want)
		}
	}
}

func TestTwoServicesAreNotReady(t *testing.T) {
	o := newOutput()
	cut := strings.LastIndex(started, "36233")
	_, _ = o.Write([]byte(started[:cut])) // in the middle of the third line
	select {
	case <-o.ready:
		t.Error("ready before the third line was complete")
	default:
	}
}

func TestTheEndOfALongOutputIsKept(t *testing.T) {
	o := newOutput()
	for range 1000 {
		_, _ = o.Write([]byte("some line of a log\n"))
	}
	_, _ = o.Write([]byte("the last words\n"))
	if got := o.String(); len(got) > outputLimit || !strings.HasSuffix(got, "the last words") {
		t.Errorf("kept %d bytes ending in %q", len(got), got[len(got)-20:])
	}
}
