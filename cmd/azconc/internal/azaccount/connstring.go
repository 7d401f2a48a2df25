package azaccount

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const (
	devAccount = "devstoreaccount1"
	// The emulator's key is public, and the same everywhere.
	devKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var connectionFields = []string{
	"DefaultEndpointsProtocol", "EndpointSuffix", "AccountName", "AccountKey", "SharedAccessSignature",
	"BlobEndpoint", "TableEndpoint", "QueueEndpoint", "FileEndpoint",
	"BlobSecondaryEndpoint", "TableSecondaryEndpoint", "QueueSecondaryEndpoint", "FileSecondaryEndpoint",
	"UseDevelopmentStorage",
}

var (
	hostSuffix  = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	accountName = regexp.MustCompile(`^[a-z0-9]{3,24}(-secondary)?$`) // a secondary endpoint has the account's name with a suffix
)

// parseConnectionString returns the account of a connection string, with the endpoints that the string names and those
// that follow from the name and the suffix. An error names the invalid field. It never repeats a value that may be
// secret, nor a field with an unknown name, which may be part of a key.
func parseConnectionString(s string) (*Account, error) {
	fields, err := splitConnectionString(s)
	if err != nil {
		return nil, err
	}
	if dev, ok := fields["UseDevelopmentStorage"]; ok {
		return developmentStorage(dev, fields)
	}
	a := &Account{
		name:     fields["AccountName"],
		key:      fields["AccountKey"],
		sas:      strings.TrimPrefix(fields["SharedAccessSignature"], "?"),
		endpoint: map[Service]string{},
	}
	if a.key != "" && a.sas != "" {
		return nil, invalid("connection string: AccountKey and SharedAccessSignature are both given: keep one of them")
	}
	if a.key != "" && a.name == "" {
		return nil, invalid("connection string: AccountKey is given without AccountName")
	}
	if err := validKey("connection string: AccountKey", a.key); err != nil {
		return nil, err
	}
	if err := validSAS("connection string: SharedAccessSignature", a.sas); err != nil {
		return nil, err
	}
	protocol, suffix := cmp.Or(fields["DefaultEndpointsProtocol"], "https"), cmp.Or(fields["EndpointSuffix"], "core.windows.net")
	if protocol != "http" && protocol != "https" {
		return nil, invalid("connection string: DefaultEndpointsProtocol %q is neither http nor https", protocol)
	}
	if !hostSuffix.MatchString(suffix) {
		return nil, invalid("connection string: EndpointSuffix is not the end of a host name, such as core.windows.net")
	}
	for _, service := range services {
		name := strings.ToUpper(string(service[:1])) + string(service[1:]) + "Endpoint"
		if given, ok := fields[name]; ok {
			if a.endpoint[service], err = validEndpoint("connection string: "+name, given); err != nil {
				return nil, err
			}
		} else if a.name != "" {
			if err := validAccount("connection string: AccountName", a.name); err != nil {
				return nil, err
			}
			a.endpoint[service] = protocol + "://" + a.name + "." + string(service) + "." + suffix
		}
	}
	if len(a.endpoint) == 0 {
		return nil, invalid("connection string: neither AccountName nor an endpoint is given")
	}
	return a, nil
}

func splitConnectionString(s string) (map[string]string, error) {
	fields := map[string]string{}
	for i, part := range strings.Split(s, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, invalid("connection string: field %d has no %q", i+1, "=")
		}
		at := slices.IndexFunc(connectionFields, func(known string) bool { return strings.EqualFold(known, strings.TrimSpace(name)) })
		if at < 0 {
			return nil, hinted("the names are "+strings.Join(connectionFields, ", "),
				"connection string: field %d has an unknown name", i+1)
		}
		known := connectionFields[at]
		if _, twice := fields[known]; twice {
			return nil, invalid("connection string: %s is given twice", known)
		}
		if value = strings.TrimSpace(value); value == "" {
			return nil, invalid("connection string: %s is empty", known)
		}
		fields[known] = value
	}
	if len(fields) == 0 {
		return nil, invalid("connection string: it is empty")
	}
	return fields, nil
}

func developmentStorage(value string, fields map[string]string) (*Account, error) {
	if !strings.EqualFold(value, "true") {
		return nil, invalid("connection string: UseDevelopmentStorage can only be true")
	}
	if len(fields) > 1 {
		return nil, invalid("connection string: nothing else can be given with UseDevelopmentStorage")
	}
	const base = "http://127.0.0.1"
	return &Account{name: devAccount, key: devKey, endpoint: map[Service]string{
		Blob:  base + ":10000/" + devAccount,
		Queue: base + ":10001/" + devAccount,
		Table: base + ":10002/" + devAccount,
	}}, nil
}

func validKey(field, key string) error {
	if key == "" {
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return invalid("%s is not base64: it may have been cut off", field)
	}
	return nil
}

func validSAS(field, sas string) error {
	if sas == "" {
		return nil
	}
	if q, err := url.ParseQuery(sas); err != nil || q.Get("sig") == "" {
		return invalid("%s is not a shared access signature: it has no sig parameter", field)
	}
	return nil
}

func validAccount(field, name string) error {
	if !accountName.MatchString(name) {
		return invalid("%s is not an account name: 3 to 24 lower-case letters and digits", field)
	}
	return nil
}

func validEndpoint(field, s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", invalid("%s is not a URL such as https://account.blob.core.windows.net", field)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", invalid("%s must be a URL without a query: a SAS goes into its own field", field)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
