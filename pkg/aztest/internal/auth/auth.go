package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Request is a request whose credential is to be verified.
type Request struct {
	HTTP    *http.Request // as it was sent
	Service string        // storage.Blob, Queue, Table or File
	Op      string        // the operation's name in the REST reference
	// Container and Path name the resource: a container and a blob, a share and a file, a queue, or a table.
	Container, Path string
}

// Resources answers what an authorization depends on beside the credential.
type Resources interface {
	// Policies returns the stored access policies of a container, queue, table or share: XML, or nothing.
	Policies(service, container string) []byte
	// Public returns what is public of a container: "", "blob" or "container".
	Public(container string) string
	// Exists reports whether a blob or a file is there.
	Exists(service, container, path string) bool
}

// Denial is why a request is refused. Nil means that it is not.
type Denial struct {
	Status        int
	Code, Message string
	Detail        string // AuthenticationErrorDetail, which only some denials have
}

// Authority verifies requests to one account. It is safe for concurrent use.
type Authority struct {
	account string
	key     []byte
}

// New returns the Authority of an account. key is in base64.
func New(account, key string) (*Authority, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("the key of the account %s is not base64", account)
	}
	return &Authority{account: account, key: raw}, nil
}

// Check returns why a request is refused, or nil. The grant of a SAS is returned for transactions, which
// carry other operations.
func (a *Authority) Check(r *Request, look Resources) (*Grant, *Denial) {
	authorization, query := r.HTTP.Header.Get("Authorization"), parseQuery(r.HTTP.URL.RawQuery)
	scheme, credential, _ := strings.Cut(authorization, " ")
	switch {
	case authorization == "" && query.has("sig"):
		return a.checkSAS(r, query, look)
	case authorization == "":
		return nil, anonymous(r, look)
	case strings.EqualFold(scheme, "Bearer"):
		return nil, &Denial{Status: http.StatusUnauthorized, Code: "InvalidAuthenticationInfo", Message: unauthenticated,
			Detail: "There is no Microsoft Entra ID here. Use the account's key or a SAS."}
	case scheme != "SharedKey" && (scheme != "SharedKeyLite" || r.Service != storage.Table):
		return nil, malformed()
	}
	return nil, a.checkSharedKey(r, scheme, credential)
}

// anonymous permits the reads that a public container is open to.
func anonymous(r *Request, look Resources) *Denial {
	if r.Service == storage.Blob && r.Container != "" {
		switch public := look.Public(r.Container); r.Op {
		case "Get Blob", "Get Blob Properties", "Get Blob Metadata", "Get Block List", "Get Page Ranges":
			if public == "blob" || public == "container" {
				return nil
			}
		case "List Blobs", "Get Container Properties", "Get Container Metadata":
			if public == "container" {
				return nil
			}
		}
	}
	return &Denial{Status: http.StatusUnauthorized, Code: "NoAuthenticationInformation", Message: unauthenticated}
}

const unauthenticated = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."

func malformed() *Denial {
	return &Denial{Status: http.StatusBadRequest, Code: "InvalidAuthenticationInfo",
		Message: "Authentication information is not given in the correct format. Check the value of Authorization header."}
}

// failed is the refusal of a credential that is not right.
func failed(format string, args ...any) *Denial {
	return &Denial{Status: http.StatusForbidden, Code: "AuthenticationFailed",
		Message: "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
		Detail:  fmt.Sprintf(format, args...)}
}

// denied is the refusal of a credential that is right and not sufficient.
func denied(code, using string) *Denial {
	message := "This request is not authorized to perform this operation"
	if using != "" {
		message += " using this " + using
	}
	return &Denial{Status: http.StatusForbidden, Code: code, Message: message + "."}
}

// sign returns the MAC of a text.
func (a *Authority) sign(text string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signed reports whether a signature is that of a text, in constant time.
func (a *Authority) signed(text, signature string) bool {
	return hmac.Equal([]byte(a.sign(text)), []byte(signature))
}

// tooOld is the age at which a request's date is refused.
const tooOld = 15 * time.Minute
