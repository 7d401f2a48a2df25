package cli

import (
	"encoding/base64"
	"net/url"
	"strings"
)

const (
	devAccount = "devstoreaccount1"
	// The emulator's key is the same everywhere and documented.
	devKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// connectionString is a parsed connection string. Endpoints are complete: those that were not given are made from the
// account's name and the suffix.
type connectionString struct {
	account, key, sas        string
	blob, table, queue, file string
}

var connectionFields = []string{
	"DefaultEndpointsProtocol", "EndpointSuffix", "AccountName", "AccountKey", "SharedAccessSignature",
	"BlobEndpoint", "TableEndpoint", "QueueEndpoint", "FileEndpoint",
	"BlobSecondaryEndpoint", "TableSecondaryEndpoint", "QueueSecondaryEndpoint", "FileSecondaryEndpoint",
	"UseDevelopmentStorage", "DevelopmentStorageProxyUri",
}

// parseConnectionString names the field that is wrong. It never repeats a value that may be secret, nor a piece of the
// string that it does not know, which may be half a key.
func parseConnectionString(s string) (connectionString, error) {
	fields, err := splitConnectionString(s)
	if err != nil {
		return connectionString{}, err
	}
	if dev, ok := fields["UseDevelopmentStorage"]; ok {
		return developmentStorage(dev, fields)
	}
	c := connectionString{
		account: fields["AccountName"],
		key:     fields["AccountKey"],
		sas:     strings.TrimPrefix(fields["SharedAccessSignature"], "?"),
	}
	if c.key != "" && c.sas != "" {
		return c, Usagef("connection string: AccountKey and SharedAccessSignature are both given: keep one of them")
	}
	if c.key != "" && c.account == "" {
		return c, Usagef("connection string: AccountKey is given without AccountName")
	}
	if err := validKey("connection string: AccountKey", c.key); err != nil {
		return c, err
	}
	if err := validSAS("connection string: SharedAccessSignature", c.sas); err != nil {
		return c, err
	}
	protocol, suffix := fields["DefaultEndpointsProtocol"], fields["EndpointSuffix"]
	switch protocol {
	case "":
		protocol = "https"
	case "http", "https":
	default:
		return c, Usagef("connection string: DefaultEndpointsProtocol %q is neither http nor https", protocol)
	}
	if suffix == "" {
		suffix = "core.windows.net"
	}
	if strings.ContainsAny(suffix, "/?#@: ") {
		return c, Usagef("connection string: EndpointSuffix is not the end of a host name, such as core.windows.net")
	}
	for service, to := range map[string]*string{"Blob": &c.blob, "Table": &c.table, "Queue": &c.queue, "File": &c.file} {
		name := service + "Endpoint"
		if given, ok := fields[name]; ok {
			if *to, err = validEndpoint("connection string: "+name, given); err != nil {
				return c, err
			}
		} else if c.account != "" {
			if err := validAccount("connection string: AccountName", c.account); err != nil {
				return c, err
			}
			*to = protocol + "://" + c.account + "." + strings.ToLower(service) + "." + suffix
		}
	}
	if c.account == "" && c.blob == "" && c.table == "" && c.queue == "" && c.file == "" {
		return c, Usagef("connection string: neither AccountName nor an endpoint is given")
	}
	return c, nil
}

func splitConnectionString(s string) (map[string]string, error) {
	fields := map[string]string{}
	for i, part := range strings.Split(s, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, Usagef("connection string: field %d has no %q", i+1, "=")
		}
		known := ""
		for _, k := range connectionFields {
			if strings.EqualFold(k, strings.TrimSpace(name)) {
				known = k
			}
		}
		if known == "" {
			return nil, WithHint(Usagef("connection string: field %d has an unknown name", i+1),
				"the names are "+strings.Join(connectionFields, ", "))
		}
		if _, twice := fields[known]; twice {
			return nil, Usagef("connection string: %s is given twice", known)
		}
		if value = strings.TrimSpace(value); value == "" {
			return nil, Usagef("connection string: %s is empty", known)
		}
		fields[known] = value
	}
	if len(fields) == 0 {
		return nil, Usagef("connection string: it is empty")
	}
	return fields, nil
}

func developmentStorage(value string, fields map[string]string) (connectionString, error) {
	if !strings.EqualFold(value, "true") {
		return connectionString{}, Usagef("connection string: UseDevelopmentStorage can only be true")
	}
	base := "http://127.0.0.1"
	if proxy, ok := fields["DevelopmentStorageProxyUri"]; ok {
		var err error
		if base, err = validEndpoint("connection string: DevelopmentStorageProxyUri", proxy); err != nil {
			return connectionString{}, err
		}
	}
	for name := range fields {
		if name != "UseDevelopmentStorage" && name != "DevelopmentStorageProxyUri" {
			return connectionString{}, Usagef("connection string: %s cannot be given with UseDevelopmentStorage", name)
		}
	}
	return connectionString{
		account: devAccount, key: devKey,
		blob:  base + ":10000/" + devAccount,
		queue: base + ":10001/" + devAccount,
		table: base + ":10002/" + devAccount,
	}, nil
}

func validKey(field, key string) error {
	if key == "" {
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return Usagef("%s is not base64: it may have been cut off", field)
	}
	return nil
}

func validSAS(field, sas string) error {
	if sas == "" {
		return nil
	}
	if q, err := url.ParseQuery(sas); err != nil || q.Get("sig") == "" {
		return Usagef("%s is not a shared access signature: it has no sig parameter", field)
	}
	return nil
}

func validAccount(field, name string) error {
	ok := len(name) >= 3 && len(name) <= 24
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	// A secondary endpoint is addressed by the account's name with a suffix.
	if !ok && (len(name) < 13 || !strings.HasSuffix(name, "-secondary") || validAccount(field, strings.TrimSuffix(name, "-secondary")) != nil) {
		return Usagef("%s is not an account name: 3 to 24 lower-case letters and digits", field)
	}
	return nil
}

func validEndpoint(field, s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", Usagef("%s is not a URL such as https://account.blob.core.windows.net", field)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", Usagef("%s must be a URL without a query: a SAS goes into its own field", field)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
