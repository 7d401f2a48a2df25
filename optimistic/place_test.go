package optimistic_test

import (
	"testing"

	"github.com/azconc/azconc/optimistic/internal/sealed"
)

type client struct{ url string }

func (c client) URL() string { return c.url }

type placed struct{ client any }

func (p placed) Resource() string      { return "box/n" }
func (p placed) Traits() sealed.Traits { return sealed.Traits{Client: p.client} }

// TestAPlaceHasItsAccount: a crowd on a blob of one account delayed the changes of the blobs of the same path in 99 others, and of those of
// other accounts of one emulator.
func TestAPlaceHasItsAccount(t *testing.T) {
	places := map[string]bool{}
	for _, c := range []any{client{"https://a.blob.core.windows.net/box/n?sig=x"}, client{"https://b.blob.core.windows.net/box/n"},
		client{"http://127.0.0.1:10000/one/box/n"}, client{"http://127.0.0.1:10000/two/box/n"}, client{"http://127.0.0.1:10001/one/box/n"}, &placed{}, &placed{}, nil} {
		places[sealed.Place(placed{c})] = true
	}
	if !places["a.blob.core.windows.net/box/n"] || !places["127.0.0.1:10000/two/box/n"] || !places["box/n"] || len(places) != 8 {
		t.Errorf("%v: want a place for each account", places)
	}
}
