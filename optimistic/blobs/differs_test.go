package blobs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type mixed struct {
	N     int            `json:"n"`
	F     float64        `json:"f,omitempty"`
	S     string         `json:"s"`
	B     bool           `json:"b"`
	L     []int          `json:"l"`
	M     map[string]any `json:"m,omitempty"`
	Inner *mixed         `json:"inner,omitempty"`
}

type spelled struct {
	At   time.Time `json:"at"`
	Data []byte    `json:"data"`
	Q    int       `json:"q,string"`
	F    float32   `json:"f"`
	Two  [2]int    `json:"two"`
}

// changed decides as an update does that has to decode.
func changed[T any](before, after []byte) bool {
	var codec JSONCodec[T]
	v, err := codec.Decode(before)
	if err != nil {
		return true
	}
	again, err := codec.Encode(v)
	return err != nil || !bytes.Equal(again, after)
}

func TestTextsThatDifferInPlaceNeedNoDecoding(t *testing.T) {
	const base = `{"n":1,"f":2.5,"s":"abc","b":true,"l":[1,2],"m":{"x":[{"y":1}]}}`
	for _, tt := range []struct {
		name, before, after string
		want                bool
	}{
		{"a number", base, `{"n":12,"f":2.5,"s":"abc","b":true,"l":[1,2],"m":{"x":[{"y":1}]}}`, true},
		{"numbers and a string", base, `{"n":7,"f":3.5,"s":"abcd","b":true,"l":[1,2],"m":{"x":[{"y":1}]}}`, true},
		{"a boolean", base, `{"n":1,"f":2.5,"s":"abc","b":false,"l":[1,2],"m":{"x":[{"y":1}]}}`, true},
		{"a longer list", base, `{"n":1,"f":2.5,"s":"abc","b":true,"l":[1,2,3],"m":{"x":[{"y":1}]}}`, true},
		{"a shorter list", base, `{"n":1,"f":2.5,"s":"abc","b":true,"l":[1],"m":{"x":[{"y":1}]}}`, true},
		{"an empty list", base, `{"n":1,"f":2.5,"s":"abc","b":true,"l":[],"m":{"x":[{"y":1}]}}`, true},
		{"a list within", base, `{"n":1,"f":2.5,"s":"abc","b":true,"l":[1,2],"m":{"x":[{"y":1},{"y":"]"}]}}`, true},
		{"a new line at the end", base + "\n", `{"n":2,"f":2.5,"s":"abc","b":true,"l":[1,2],"m":{"x":[{"y":1}]}}`, true},

		{"the same", base, base, false},
		{"a member twice", `{"n":1,"n":2,"s":"","b":false,"l":null}`, `{"n":2,"s":"","b":false,"l":null}`, false},
		{"a member in other letters", `{"n":1,"s":"","b":false,"l":null,"N":2}`, `{"n":2,"s":"","b":false,"l":null}`, false},
		{"a member that the type does not have", `{"n":2,"z":1,"s":"","b":false,"l":null}`, `{"n":2,"s":"","b":false,"l":null}`, false},
		{"a member that was not there", `{"n":2}`, `{"n":2,"s":"","b":false,"l":null}`, false},
		{"another spelling of a number", `{"n":1,"f":2.50,"s":"","b":false,"l":null}`, `{"n":1,"f":2.5,"s":"","b":false,"l":null}`, false},
		{"another spelling of a text", `{"n":1,"s":"\u0041<","b":false,"l":null}`, `{"n":1,"s":"A\u003c","b":false,"l":null}`, false},
		{"minus nothing", `{"n":-0,"s":"","b":false,"l":null}`, `{"n":0,"s":"","b":false,"l":null}`, false},
		{"white space", `{ "n": 1,"s":"","b":false,"l":null}`, `{"n":1,"s":"","b":false,"l":null}`, false},
	} {
		got := differs[mixed]([]byte(tt.before), []byte(tt.after))
		if got != tt.want {
			t.Errorf("%s: differs = %v, want %v", tt.name, got, tt.want)
		}
		if got && !changed[mixed]([]byte(tt.before), []byte(tt.after)) {
			t.Errorf("%s: differs = true for equal values", tt.name)
		}
	}
}

func TestSpellingsOfATypeAreNoDifference(t *testing.T) {
	const after = `{"at":"2026-01-02T03:04:05Z","data":"QQ==","q":"5","f":0.1,"two":[1,0]}`
	for _, before := range []string{
		`{"at":"2026-01-02T03:04:05.0Z","data":"QQ==","q":"5","f":0.1,"two":[1,0]}`,
		`{"at":"2026-01-02T03:04:05Z","data":"QR==","q":"5","f":0.1,"two":[1,0]}`,
		`{"at":"2026-01-02T03:04:05Z","data":"QQ==","q":"05","f":0.1,"two":[1,0]}`,
		`{"at":"2026-01-02T03:04:05Z","data":"QQ==","q":"5","f":0.10000000149,"two":[1,0]}`,
		`{"at":"2026-01-02T03:04:05Z","data":"QQ==","q":"5","f":0.1,"two":[1]}`,
	} {
		if changed[spelled]([]byte(before), []byte(after)) {
			t.Fatalf("%s is no other spelling", before)
		}
		if differs[spelled]([]byte(before), []byte(after)) {
			t.Errorf("differs = true for %s", before)
		}
	}
	if !differs[spelled]([]byte(after), []byte(`{"at":"2026-01-02T03:04:05Z","data":"QQ==","q":"5","f":0.2,"two":[1,0]}`)) {
		t.Error("another number is no difference")
	}
}

// FuzzDiffersNeverContradictsDecoding compares any two texts of which one is an encoding.
func FuzzDiffersNeverContradictsDecoding(f *testing.F) {
	f.Add(`{"n":1,"l":[1,2]}`, `{"n":2,"l":[1]}`)
	f.Add(`{"n":1,"n":2}`, `{"n":2}`)
	f.Add(`{"s":"a\"b","m":{"x":[1,{"y":null}]}}`, `{"s":"a\\","m":{"x":[1,{"y":3}]}}`)
	f.Add(`{"inner":{"n":1,"N":3}}`, `{"inner":{"n":3}}`)
	f.Fuzz(func(t *testing.T, before, value string) {
		checkDiffers[mixed](t, before, value)
		checkDiffers[spelled](t, before, value)
		checkDiffers[any](t, before, value)
		checkDiffers[map[string]json.RawMessage](t, before, value)
		checkDiffers[[]mixed](t, before, value)
	})
}

func checkDiffers[T any](t *testing.T, before, value string) {
	var codec JSONCodec[T]
	v, err := codec.Decode([]byte(value))
	if err != nil {
		return
	}
	after, err := codec.Encode(v)
	if err != nil {
		return
	}
	if _, err := codec.Decode([]byte(before)); err != nil {
		return // it was read before, so it can be decoded
	}
	if differs[T]([]byte(before), after) && !changed[T]([]byte(before), after) {
		t.Errorf("%T: %q and %q differ only in their spelling", v, before, after)
	}
	if again, err := codec.Encode(v); err == nil && changed[T](after, again) && !bytes.Contains(after, replaced) && (!jsonTraitsOf(typeFor[T]()).untyped || plain(v)) {
		t.Errorf("%T: the encoding %q is not its own", v, after)
	}
}

func typeFor[T any]() reflect.Type { return reflect.TypeFor[T]() }
