package amp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// maxDetail bounds what is shown of a text from elsewhere, in characters.
const maxDetail = 256

// sign tells a kind by what the text of a failure contains, in lower case.
type sign struct {
	text string
	kind Kind
}

// credentialSigns tell failures of the credential chain, innermost cause first.
var credentialSigns = []sign{
	{"non-allowed auth method", CredentialsNotAllowed},
	{"assume role but it is disabled", AssumeRoleNotAllowed},
	{"unable to add custom rootcas", CABundle},
	{"no ec2 imds role found", NoRole},
	{"failed to get shared config profile", NoProfile},
	{"static credentials are empty", MissingCredentials},
	{"operation error sts", AssumeRoleFailed},
	{"failed to refresh cached credentials", MissingCredentials},
}

// accessSigns tell AWS's refusals. A mismatch echoes the request, which may
// contain any of the other texts, so it is looked for first.
var accessSigns = []sign{
	{"request signature we calculated does not match", BadSignature},
	{"scoped to a valid region", WrongRegion},
	{"scoped to correct service", WrongService},
	{"signature expired", ClockSkew},
	{"signature not yet current", ClockSkew},
	{"token included in the request is expired", ExpiredToken},
	{"expiredtoken", ExpiredToken},
	{"token included in the request is invalid", InvalidKey},
	{"unrecognizedclient", InvalidKey},
	{"missing authentication token", MissingCredentials},
	{"missingauthenticationtoken", MissingCredentials},
	{"incompletesignature", BadSignature},
	{"invalidsignature", BadSignature},
}

func kindBy(signs []sign, text string) (Kind, bool) {
	text = strings.ToLower(text)
	for _, s := range signs {
		if strings.Contains(text, s.text) {
			return s.kind, true
		}
	}
	return "", false
}

// transportFault classifies a request that got no answer.
func (c *Client) transportFault(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return c.contextFault(ctx)
	}
	if kind, ok := kindBy(credentialSigns, err.Error()); ok {
		return c.fault(kind, 0, "")
	}
	if isTimeout(err) {
		return c.timeoutFault()
	}
	return c.fault(Unreachable, 0, strings.Join([]string{c.host, networkCause(err)}, ": "))
}

// contextFault tells a caller who left from a deadline that passed.
func (c *Client) contextFault(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		fault := c.fault(Canceled, 0, "")
		fault.Err = context.Canceled
		return fault
	}
	return c.timeoutFault()
}

func (c *Client) timeoutFault() *Error {
	fault := c.fault(Timeout, 0, "")
	fault.Err = context.DeadlineExceeded
	return fault
}

// isTimeout leaves out connections that were never made: a server that can't
// be reached is no slow query.
func isTimeout(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// networkCause shows the cause only where its type vouches that it comes from
// the network: what a signer says may quote what it signs with.
func networkCause(err error) string {
	var (
		operation   *net.OpError
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name):
		return "lookup " + name.Name + ": " + name.Err
	case errors.As(err, &certificate):
		return certificate.Error()
	case errors.As(err, &authority):
		return authority.Error()
	case errors.As(err, &record):
		return record.Error()
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	case errors.Is(err, io.EOF):
		return "the connection was closed"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it speaks http, not https"
	}
	return "the request failed"
}

// bodyFault classifies a success whose body could not be read to its end.
func (c *Client) bodyFault(ctx context.Context, status int, err error) *Error {
	var (
		tooLarge *http.MaxBytesError
		failure  *apiError
	)
	switch {
	case ctx.Err() != nil:
		return c.contextFault(ctx)
	case errors.As(err, &tooLarge):
		return c.fault(ResponseTooLarge, status, fmt.Sprintf("more than %s, the limit that limits.responseMB sets", mebibytes(tooLarge.Limit)))
	case errors.Is(err, errTooManySeries):
		return c.fault(TooManySeries, status, fmt.Sprintf("more than %d, the limit that limits.series sets", c.options.MaxSeries))
	case strings.Contains(err.Error(), "response body too large"):
		return c.fault(ResponseTooLarge, status, "over Grafana's own response limit, GF_DATAPROXY_RESPONSE_LIMIT")
	case errors.As(err, &failure):
		return c.apiFault(status, *failure)
	case isTimeout(err):
		return c.timeoutFault()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.fault(Decode, status, "cut short")
	}
	return c.fault(Decode, status, printable(err.Error()))
}

func mebibytes(bytes int64) string {
	if bytes%(1<<20) != 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// statusFault classifies an answer that is no success.
func (c *Client) statusFault(response *http.Response) *Error {
	body := readErrorBody(response)
	status := response.StatusCode
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return c.accessFault(response, body)
	case status >= 300 && status < 400:
		return c.fault(Redirected, status, redirectDetail(response))
	}
	var fault *Error
	if isJSON(response) {
		fault = c.apiFault(status, parseFailure(body))
	} else {
		fault = c.contentFault(response, body)
	}
	fault.retryAfter = retryAfter(response.Header)
	return fault
}

// contentFault classifies an answer that is not JSON, and so perhaps not from AMP.
func (c *Client) contentFault(response *http.Response, body string) *Error {
	kind := kindOfStatus(response.StatusCode)
	switch kind {
	case ResponseTooLarge: // which AMP says in plain text
		return c.fault(kind, response.StatusCode, safeText(body))
	case Refused:
		kind = UnexpectedContent // no API has looked at the query
	}
	return c.fault(kind, response.StatusCode, contentDetail(response, body))
}

// accessFault reads the body only to classify it: it may echo the request that
// was signed, session token included.
func (c *Client) accessFault(response *http.Response, body string) *Error {
	kind, ok := kindBy(accessSigns, response.Header.Get("X-Amzn-Errortype")+" "+body)
	if !ok {
		kind = AccessDenied
	}
	return c.fault(kind, response.StatusCode, c.host)
}

// apiFault classifies what the server says in its own words.
func (c *Client) apiFault(status int, failure apiError) *Error {
	said := safeText(failure.Text)
	if said == "" {
		said = safeText(failure.Message)
	}
	return c.fault(kindOfFailure(status, failure), status, said)
}

func kindOfFailure(status int, failure apiError) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttled
	case failure.Type == "bad_data":
		return BadData
	case failure.Type == "timeout", failure.Type == "canceled":
		return Timeout
	case failure.Type == "not_found":
		return NotFound
	case failure.Type == "execution" && strings.Contains(failure.Text, "samples"):
		return TooManySamples
	case failure.Type == "execution":
		return Refused
	}
	return kindOfStatus(status)
}

func kindOfStatus(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttled
	case status == http.StatusRequestEntityTooLarge:
		return ResponseTooLarge
	case status == http.StatusNotFound:
		return NotFound
	case status == http.StatusMethodNotAllowed:
		return MethodNotAllowed
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return Refused
	case status >= 500:
		return Unavailable
	}
	return UnexpectedContent
}

// parseFailure leaves what isn't an API's error to the status.
func parseFailure(body string) apiError {
	var failure apiError
	if err := json.Unmarshal([]byte(body), &failure); err != nil {
		return apiError{}
	}
	return failure
}

func isJSON(response *http.Response) bool {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}

// readErrorBody takes what it gets: half a body is still worth classifying.
func readErrorBody(response *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	return string(body)
}

func redirectDetail(response *http.Response) string {
	location, err := url.Parse(response.Header.Get("Location"))
	if err != nil || location.Host == "" {
		return ""
	}
	return "redirected to " + location.Host
}

func contentDetail(response *http.Response, body string) string {
	detail := fmt.Sprintf("unexpected content type %q, status %d", printable(response.Header.Get("Content-Type")), response.StatusCode)
	if text := safeText(body); text != "" {
		detail += ": " + text
	}
	return detail
}

// safeText is what may be shown of a body: nothing if it seems to echo a
// signed request, else its beginning.
func safeText(text string) string {
	lower := strings.ToLower(text)
	for _, mark := range []string{"aws4-hmac-sha256", "x-amz-", "credential=", "authorization"} {
		if strings.Contains(lower, mark) {
			return ""
		}
	}
	return printable(text)
}

// printable gives at most maxDetail characters, all of them printable, with
// every run of white space as one blank.
func printable(text string) string {
	shown := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	shown = strings.Join(strings.Fields(shown), " ")
	runes := []rune(shown)
	return string(runes[:min(len(runes), maxDetail)])
}
