package amptest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AWS Signature Version 4, checked as the service does: from the request as it
// came over the wire, without any signer's code.

const (
	signingAlgorithm = "AWS4-HMAC-SHA256"
	signingService   = "aps"
	signingTime      = "20060102T150405Z"
	signingDate      = "20060102"
	maxClockSkew     = 5 * time.Minute
)

// signatureVerifier accepts requests that its credentials have signed.
type signatureVerifier struct {
	credentials Credentials
	region      string
	now         func() time.Time
}

// authorization is the parsed header of that name.
type authorization struct {
	accessKeyID, date, region, service string
	signedHeaders                      []string // lower case, sorted
	signature                          string   // hex
}

// verify returns why the request is refused, as AWS words it; nil accepts it.
func (v *signatureVerifier) verify(r *http.Request, body []byte) *awsError {
	auth, refused := parseAuthorization(r.Header.Get("Authorization"))
	if refused != nil {
		return refused
	}
	for _, check := range []func(*http.Request, authorization) *awsError{v.checkIdentity, v.checkTime, v.checkScope, checkSignedHeaders} {
		if refused := check(r, auth); refused != nil {
			return refused
		}
	}
	return v.checkSignature(r, auth, body)
}

func parseAuthorization(header string) (authorization, *awsError) {
	if header == "" {
		return authorization{}, forbidden("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	algorithm, parameters, _ := strings.Cut(header, " ")
	if algorithm != signingAlgorithm {
		return authorization{}, forbidden("IncompleteSignatureException", "Unsupported AWS 'algorithm': '%s'.", algorithm)
	}
	fields := make(map[string]string)
	for parameter := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		fields[name] = value
	}
	for _, name := range []string{"Credential", "Signature", "SignedHeaders"} {
		if fields[name] == "" {
			return authorization{}, forbidden("IncompleteSignatureException", "Authorization header requires '%s' parameter.", name)
		}
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return authorization{}, forbidden("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'", fields["Credential"])
	}
	return authorization{
		accessKeyID: scope[0], date: scope[1], region: scope[2], service: scope[3],
		signedHeaders: strings.Split(fields["SignedHeaders"], ";"),
		signature:     fields["Signature"],
	}, nil
}

func (v *signatureVerifier) checkIdentity(r *http.Request, auth authorization) *awsError {
	if auth.accessKeyID != v.credentials.AccessKeyID || r.Header.Get("X-Amz-Security-Token") != v.credentials.SessionToken {
		return forbidden("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	return nil
}

func (v *signatureVerifier) checkTime(r *http.Request, auth authorization) *awsError {
	stamp := r.Header.Get("X-Amz-Date")
	signed, err := time.Parse(signingTime, stamp)
	if err != nil {
		return forbidden("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'. Got '%s'.", stamp)
	}
	now := v.now().UTC()
	earliest, latest := now.Add(-maxClockSkew), now.Add(maxClockSkew)
	switch {
	case signed.Format(signingDate) != auth.date:
		return forbidden("InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'.",
			auth.date, signed.Format(signingDate), stamp)
	case signed.Before(earliest):
		return forbidden("InvalidSignatureException", "Signature expired: %s is now earlier than %s (%s - 5 min.)",
			stamp, earliest.Format(signingTime), now.Format(signingTime))
	case signed.After(latest):
		return forbidden("InvalidSignatureException", "Signature not yet current: %s is still later than %s (%s + 5 min.)",
			stamp, latest.Format(signingTime), now.Format(signingTime))
	}
	return nil
}

func (v *signatureVerifier) checkScope(_ *http.Request, auth authorization) *awsError {
	switch {
	case auth.region != v.region:
		return forbidden("InvalidSignatureException", "Credential should be scoped to a valid region, not '%s'. ", auth.region)
	case auth.service != signingService:
		return forbidden("InvalidSignatureException", "Credential should be scoped to correct service: '%s'. ", signingService)
	}
	return nil
}

// checkSignedHeaders refuses a signature that leaves out the host or a header of AWS' own.
func checkSignedHeaders(r *http.Request, auth authorization) *awsError {
	wanted := []string{"host"}
	for name := range r.Header {
		if name := strings.ToLower(name); strings.HasPrefix(name, "x-amz-") {
			wanted = append(wanted, name)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(auth.signedHeaders, name) {
			return forbidden("InvalidSignatureException", "'%s' must be a 'SignedHeader' in the AWS Authorization.", name)
		}
	}
	return nil
}

func (v *signatureVerifier) checkSignature(r *http.Request, auth authorization, body []byte) *awsError {
	canonical := canonicalRequest(r, auth.signedHeaders, body)
	scope := strings.Join([]string{auth.date, auth.region, auth.service, "aws4_request"}, "/")
	toSign := strings.Join([]string{signingAlgorithm, r.Header.Get("X-Amz-Date"), scope, hexSHA256([]byte(canonical))}, "\n")
	key := []byte("AWS4" + v.credentials.SecretAccessKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = hmacSHA256(key, part)
	}
	if hmac.Equal([]byte(hex.EncodeToString(hmacSHA256(key, toSign))), []byte(auth.signature)) {
		return nil
	}
	return forbidden("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. "+
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.\n\n"+
		"The Canonical String for this request should have been\n'%s'\n\nThe String-to-Sign should have been\n'%s'\n", canonical, toSign)
}

func canonicalRequest(r *http.Request, signedHeaders []string, body []byte) string {
	path, query, _ := strings.Cut(cmp.Or(r.RequestURI, r.URL.RequestURI()), "?")
	var headers strings.Builder
	for _, name := range signedHeaders {
		headers.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	return strings.Join([]string{
		r.Method,
		escapeSegments(path),
		canonicalQuery(query),
		headers.String(),
		strings.Join(signedHeaders, ";"),
		hexSHA256(body),
	}, "\n")
}

// escapeSegments escapes the path as sent once more: only S3 signs it as it is.
func escapeSegments(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = awsEscape(segment)
	}
	return strings.Join(segments, "/")
}

// canonicalQuery sorts the parameters, escaped, by name and then by value.
func canonicalQuery(query string) string {
	if query == "" {
		return ""
	}
	type parameter struct{ name, value string }
	var parameters []parameter
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		parameters = append(parameters, parameter{reescape(name), reescape(value)})
	}
	slices.SortFunc(parameters, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	pairs := make([]string, len(parameters))
	for i, p := range parameters {
		pairs[i] = p.name + "=" + p.value
	}
	return strings.Join(pairs, "&")
}

// reescape brings a part of a query string into AWS' form of escaping. What isn't
// escaped correctly is taken literally: its signature can't match.
func reescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		plain = text
	}
	return awsEscape(plain)
}

// awsEscape escapes every byte but RFC 3986's unreserved characters.
func awsEscape(text string) string {
	// QueryEscape differs in the blank alone.
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// headerValue is a header as it is signed: each value's blanks collapsed, values joined by commas.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	var values []string
	for _, value := range r.Header.Values(name) {
		values = append(values, strings.Join(strings.Fields(value), " "))
	}
	return strings.Join(values, ",")
}

func forbidden(kind, format string, args ...any) *awsError {
	return &awsError{http.StatusForbidden, kind, fmt.Sprintf(format, args...)}
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hexSHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
