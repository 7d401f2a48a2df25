package azurite

import "testing"

// FuzzOutputInPieces writes any output in two pieces: the addresses found are those found in one.
func FuzzOutputInPieces(f *testing.F) {
	f.Add([]byte("Azurite Blob service is successfully listening at http://127.0.0.1:1\nAzurite Queue service is successfully listening at http://127.0.0.1:2\n"+
		"Azurite Table service is successfully listening at http://127.0.0.1:3\n"), 20)
	f.Add([]byte("x\n\xff\nAzurite Blob"), 3)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		if at < 0 || at > len(text) {
			return
		}
		whole, pieces := newOutput(), newOutput()
		if _, err := whole.Write(text); err != nil {
			t.Fatal(err)
		}
		for _, piece := range [][]byte{text[:at], text[at:]} {
			if n, err := pieces.Write(piece); err != nil || n != len(piece) {
				t.Fatalf("wrote %d of %d, %v", n, len(piece), err)
			}
		}
		for _, service := range services {
			if whole.urls[service] != pieces.urls[service] {
				t.Errorf("%s at %q, in pieces at %q", service, whole.urls[service], pieces.urls[service])
			}
		}
		if len(pieces.String()) > outputLimit || pieces.String() != whole.String() {
			t.Errorf("kept %q, of pieces %q", whole.String(), pieces.String())
		}
	})
}
