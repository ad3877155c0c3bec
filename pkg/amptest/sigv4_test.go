package amptest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-aws-sdk/pkg/awsauth"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"
)

var testCredentials = Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: "session/token+with=signs"}

var validSigning = httpclient.SigV4Config{
	AuthType: "keys", Service: "aps", Region: defaultRegion,
	AccessKey: testCredentials.AccessKeyID, SecretKey: testCredentials.SecretAccessKey, SessionToken: testCredentials.SessionToken,
}

// signedRoundTrip sends a request that Grafana's own middleware signs; the
// tampering happens after the signature.
func signedRoundTrip(t *testing.T, r *http.Request, signing httpclient.SigV4Config, tamper ...func(*http.Request)) *http.Response {
	t.Helper()
	t.Setenv("AWS_CA_BUNDLE", "") // the middleware's AWS configuration fails where it is set
	send := httpclient.RoundTripperFunc(func(r *http.Request) (*http.Response, error) {
		for _, change := range tamper {
			change(r)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	response, err := awsauth.NewSigV4Middleware().CreateMiddleware(httpclient.Options{SigV4: &signing}, send).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestASignedRequestIsAccepted(t *testing.T) {
	s := start(t, Options{Credentials: testCredentials}, twoJobs)
	form := url.Values{"query": {`up{job=~"a|b", x!="é ~*'()+/&="}`}, "time": {"60"}, "match[]": {"up", `up{job="a"}`, "a b", "zz"}}
	longTerm := testCredentials
	longTerm.SessionToken = ""
	keysOnly := validSigning
	keysOnly.SessionToken = ""

	t.Run("by GET, with repeated parameters to escape", func(t *testing.T) {
		r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/query?"+form.Encode(), nil)
		expect(t, "status", signedRoundTrip(t, r, validSigning).StatusCode, 200)
	})
	t.Run("by POST, with a form", func(t *testing.T) {
		r, _ := http.NewRequest(http.MethodPost, s.URL()+"/api/v1/query", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response := signedRoundTrip(t, r, validSigning)
		body, _ := io.ReadAll(response.Body)
		expect(t, "status", response.StatusCode, 200)
		if !bytes.Contains(body, []byte(`"job":"a"`)) {
			t.Errorf("the form did not arrive: %s", body)
		}
	})
	t.Run("with a path to escape", func(t *testing.T) {
		r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/label/a%20b%2Fc:(d)é/values", nil)
		expect(t, "status", signedRoundTrip(t, r, validSigning).StatusCode, 200)
	})
	t.Run("with headers that are not signed", func(t *testing.T) {
		r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/labels", nil)
		r.Header.Set("X-Dashboard-Uid", "gpu")
		expect(t, "status", signedRoundTrip(t, r, validSigning).StatusCode, 200)
	})
	t.Run("with long-term keys, which have no session token", func(t *testing.T) {
		s := start(t, Options{Credentials: longTerm}, "")
		r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/labels", nil)
		expect(t, "status", signedRoundTrip(t, r, keysOnly).StatusCode, 200)
	})
	t.Run("for another region, where that is the server's", func(t *testing.T) {
		s := start(t, Options{Credentials: testCredentials, Region: "eu-west-1"}, "")
		signing := validSigning
		signing.Region = "eu-west-1"
		r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/labels", nil)
		expect(t, "status", signedRoundTrip(t, r, signing).StatusCode, 200)
	})
}

// The example of AWS' documentation of the signing process: a signature that no
// code of this project or of a library has computed.
func TestThePublishedExampleSignatureIsAccepted(t *testing.T) {
	v := signatureVerifier{
		credentials: Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
		region:      "us-east-1",
		now:         func() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) },
	}
	r, _ := http.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	auth := authorization{
		accessKeyID: "AKIDEXAMPLE", date: "20150830", region: "us-east-1", service: "iam",
		signedHeaders: []string{"content-type", "host", "x-amz-date"},
		signature:     "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
	}
	if refused := v.checkSignature(r, auth, nil); refused != nil {
		t.Error(refused.message)
	}
}

func TestParametersAreSortedAsTheyAreEscaped(t *testing.T) {
	expect(t, "canonical query", canonicalQuery("b=z&a=%20+x&b={~&b=%7e&c&a=%zz"), "a=%20%20x&a=%25zz&b=%7B~&b=z&b=~&c=")
	expect(t, "no query", canonicalQuery(""), "")
}

func TestAWronglySignedRequestIsForbiddenAsAWSWordsIt(t *testing.T) {
	s := start(t, Options{Credentials: testCredentials}, twoJobs)
	with := func(change func(*httpclient.SigV4Config)) httpclient.SigV4Config {
		signing := validSigning
		change(&signing)
		return signing
	}
	const (
		invalidToken = "The security token included in the request is invalid."
		mismatch     = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method."
	)
	for _, c := range []struct {
		name    string
		signing httpclient.SigV4Config
		tamper  func(*http.Request)
		says    string
		kind    string
	}{
		{"another access key", with(func(c *httpclient.SigV4Config) { c.AccessKey = "AKIDOTHER" }), nil, invalidToken, "UnrecognizedClientException"},
		{"another secret key", with(func(c *httpclient.SigV4Config) { c.SecretKey = "other" }), nil, mismatch, "InvalidSignatureException"},
		{"another session token", with(func(c *httpclient.SigV4Config) { c.SessionToken = "other" }), nil, invalidToken, "UnrecognizedClientException"},
		{"no session token", with(func(c *httpclient.SigV4Config) { c.SessionToken = "" }), nil, invalidToken, "UnrecognizedClientException"},
		{"another region", with(func(c *httpclient.SigV4Config) { c.Region = "eu-west-1" }), nil, "Credential should be scoped to a valid region, not 'eu-west-1'. ", "InvalidSignatureException"},
		{"another service", with(func(c *httpclient.SigV4Config) { c.Service = "monitoring" }), nil, "Credential should be scoped to correct service: 'aps'. ", "InvalidSignatureException"},
		{"no signature", validSigning, func(r *http.Request) { r.Header.Del("Authorization") }, "Missing Authentication Token", "MissingAuthenticationTokenException"},
		{"basic authentication", validSigning, func(r *http.Request) { r.SetBasicAuth("user", "password") }, "Unsupported AWS 'algorithm': 'Basic'.", "IncompleteSignatureException"},
		{"a header that names no signature", validSigning, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host")
		}, "Authorization header requires 'Signature' parameter.", "IncompleteSignatureException"},
		{"a credential without a scope", validSigning, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=0")
		}, "Credential must have exactly 5 slash-delimited elements", "IncompleteSignatureException"},
		{"another body", validSigning, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("query=um"))
		}, mismatch, "InvalidSignatureException"},
		{"another query string", validSigning, func(r *http.Request) { r.URL.RawQuery = "time=1" }, mismatch, "InvalidSignatureException"},
		{"another path", validSigning, func(r *http.Request) { r.URL.Path += "_range" }, mismatch, "InvalidSignatureException"},
		{"another method", validSigning, func(r *http.Request) { r.Method = http.MethodPut }, mismatch, "InvalidSignatureException"},
		{"another host", validSigning, func(r *http.Request) { r.Host = "aps-workspaces.us-east-1.amazonaws.com" }, mismatch, "InvalidSignatureException"},
		{"a header of AWS' that isn't signed", validSigning, func(r *http.Request) { r.Header.Set("X-Amz-Target", "x") }, "'x-amz-target' must be a 'SignedHeader' in the AWS Authorization.", "InvalidSignatureException"},
		{"no date", validSigning, func(r *http.Request) { r.Header.Del("X-Amz-Date") }, "Date must be in ISO-8601 'basic format'. Got ''.", "IncompleteSignatureException"},
		{"a date that isn't the scope's", validSigning, func(r *http.Request) { r.Header.Set("X-Amz-Date", "20150830T123600Z") }, "Date in Credential scope does not match YYYYMMDD", "InvalidSignatureException"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodPost, s.URL()+"/api/v1/query", strings.NewReader("query=up"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if c.tamper == nil {
				c.tamper = func(*http.Request) {}
			}
			response := signedRoundTrip(t, r, c.signing, c.tamper)
			var body struct{ Message string }
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			expect(t, "status", response.StatusCode, 403)
			expect(t, "exception", response.Header.Get("x-amzn-ErrorType"), c.kind)
			if !strings.HasPrefix(body.Message, c.says) {
				t.Errorf("message %q lacks %q", body.Message, c.says)
			}
		})
	}
	if got := s.SamplesProcessed(); got != 0 {
		t.Errorf("%d samples billed for forbidden requests", got)
	}
}

func TestAMismatchEchoesTheCanonicalRequestWithTheSessionToken(t *testing.T) {
	s := start(t, Options{Credentials: testCredentials}, "")
	r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/labels", nil)
	signing := validSigning
	signing.SecretKey = "other"
	body, err := io.ReadAll(signedRoundTrip(t, r, signing).Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"x-amz-security-token:" + testCredentials.SessionToken, "The Canonical String for this request should have been", "The String-to-Sign should have been"} {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("%s lacks %q", body, part)
		}
	}
}

func TestAClockThatIsOffByMoreThanFiveMinutesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ahead  time.Duration // of the server
		status int
		says   string
	}{
		"five minutes ahead, nearly":  {5*time.Minute - 10*time.Second, 200, ""},
		"five minutes behind, nearly": {-5*time.Minute + 10*time.Second, 200, ""},
		"more than that ahead":        {5*time.Minute + 10*time.Second, 403, "Signature expired: "},
		"more than that behind":       {-5*time.Minute - 10*time.Second, 403, "Signature not yet current: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Options{Credentials: testCredentials, Now: func() time.Time { return time.Now().Add(c.ahead) }}, "")
			r, _ := http.NewRequest(http.MethodGet, s.URL()+"/api/v1/labels", nil)
			response := signedRoundTrip(t, r, validSigning)
			body, _ := io.ReadAll(response.Body)
			expect(t, "status", response.StatusCode, c.status)
			if !bytes.Contains(body, []byte(c.says)) {
				t.Errorf("%s lacks %q", body, c.says)
			}
		})
	}
}
