package aztest

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// corsRule is a rule of a service's properties (REST: "Cross-Origin Resource Sharing (CORS) support"). Lists have commas.
type corsRule struct {
	AllowedOrigins, AllowedMethods, AllowedHeaders, ExposedHeaders string
	MaxAgeInSeconds                                                string
}

// corsRules returns the rules of the service that a request is for. There are none until they are set. It is called with
// mu held.
func (s *Service) corsRules(r *storage.Request) []corsRule {
	properties := s.blobs.Properties()
	switch serviceOf(r) {
	case auth.Table:
		properties = s.tables.Properties()
	case auth.Queue:
		properties = s.queues.Properties()
	case auth.File:
		properties = s.files.Properties()
	}
	var parsed struct {
		Rules []corsRule `xml:"Cors>CorsRule"`
	}
	_ = xml.Unmarshal(bytes.TrimPrefix(properties, []byte("\ufeff")), &parsed) // what is no XML has no rules
	return parsed.Rules
}

// ruleFor returns the first rule that permits an origin a method and headers, or nil.
func (s *Service) ruleFor(r *storage.Request, origin, method string, headers []string) *corsRule {
	for _, rule := range s.corsRules(r) {
		if listed(rule.AllowedOrigins, origin) && listed(rule.AllowedMethods, method) &&
			!slices.ContainsFunc(headers, func(h string) bool { return !listed(rule.AllowedHeaders, h) }) {
			return &rule
		}
	}
	return nil
}

// listed reports whether a list with commas has a text, or a prefix of it that ends in a star.
func listed(list, text string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		prefix, star := strings.CutSuffix(one, "*")
		if strings.EqualFold(one, text) || star && len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// preflight answers a browser that asks whether a page of another origin may send a request. It needs no credential.
func (s *Service) preflight(r *storage.Request) *storage.Answer {
	origin, method, wanted := r.Header.Get("Origin"), r.Header.Get("Access-Control-Request-Method"), r.Header.Get("Access-Control-Request-Headers")
	if origin == "" || method == "" {
		return storage.Fail(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that is mandatory for this request is not specified.")
	}
	headers := strings.FieldsFunc(wanted, func(c rune) bool { return c == ',' || c == ' ' })
	rule := s.ruleFor(r, origin, method, headers)
	if rule == nil {
		return storage.Fail(http.StatusForbidden, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.")
	}
	return storage.OK(http.StatusOK).Set("Access-Control-Allow-Origin", origin).Set("Access-Control-Allow-Methods", method).
		Set("Access-Control-Allow-Headers", wanted).Set("Access-Control-Max-Age", rule.MaxAgeInSeconds).
		Set("Access-Control-Allow-Credentials", "true").Set("Vary", "Origin")
}

// cors adds what lets a page of another origin read a response.
func (s *Service) cors(a *storage.Answer, r *storage.Request) *storage.Answer {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return a
	}
	rule := s.ruleFor(r, origin, r.Method, nil)
	if rule == nil {
		return a
	}
	if strings.TrimSpace(rule.AllowedOrigins) == "*" {
		origin = "*"
	}
	return a.Set("Access-Control-Allow-Origin", origin).Set("Access-Control-Expose-Headers", rule.ExposedHeaders).Set("Vary", "Origin")
}
