package plugin

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/amptest"
)

const (
	noResult = `{"status":"success","data":{"resultType":"vector","result":[]}}`
	keys     = `"sigV4Auth": true, "sigV4AuthType": "keys", "sigV4Region": "us-east-1"`
)

var twoKeys = []string{"sigV4AccessKey", "AKID", "sigV4SecretKey", "SECRET"}

// connect gives a client of the data source, as the plugin makes it.
func connect(t *testing.T, s backend.DataSourceInstanceSettings) *amp.Client {
	t.Helper()
	parsed := parse(t, s)
	client, err := NewHTTPClient(t.Context(), s, parsed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return amp.New(client, parsed.URL, amp.Options{Timeout: parsed.QueryTimeout})
}

// withoutCABundle keeps the machine's own certificates out: with them nothing can be signed.
func withoutCABundle(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_CA_BUNDLE", "")
}

func ask(ctx context.Context, client *amp.Client) error {
	_, err := client.Query(ctx, "up", time.Unix(0, 0))
	return err
}

// recorder answers every query and gives the headers of the last.
func recorder(t *testing.T) (url string, last *http.Header) {
	t.Helper()
	last = new(http.Header)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, noResult)
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

// forwarding is the context of a request with which Grafana forwards what it knows of its user.
func forwarding(ctx context.Context) context.Context {
	return httpclient.WithContextualMiddleware(ctx, httpclient.MiddlewareFunc(func(_ httpclient.Options, next http.RoundTripper) http.RoundTripper {
		return httpclient.RoundTripperFunc(func(r *http.Request) (*http.Response, error) {
			for _, name := range []string{"Authorization", "Cookie", "Host", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Amz-Date", "X-Amz-Security-Token", "X-Id-Token", "X-Grafana-Id"} {
				r.Header.Set(name, "forwarded")
			}
			return next.RoundTrip(r)
		})
	}))
}

func TestConnectionSigns(t *testing.T) {
	withoutCABundle(t)
	t.Run("the signature is for the region and service of the settings, with the session token", func(t *testing.T) {
		url, last := recorder(t)
		client := connect(t, instance(url, `{`+keys+`, "sigV4Region": "eu-west-1"}`, append(twoKeys, "sigV4SessionToken", "TOKEN")...))
		if err := ask(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		signature := last.Get("Authorization")
		if !strings.HasPrefix(signature, "AWS4-HMAC-SHA256 Credential=AKID/") || !strings.Contains(signature, "/eu-west-1/aps/aws4_request") {
			t.Errorf("got %s", signature)
		}
		if last.Get("X-Amz-Security-Token") != "TOKEN" {
			t.Errorf("got %v", *last)
		}
	})

	workspace, err := amptest.New(amptest.Options{Credentials: amptest.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workspace.Close() })
	if err := workspace.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}

	for _, method := range []string{http.MethodPost, http.MethodGet} {
		t.Run("AMP accepts a signed "+method+", whatever headers Grafana forwards", func(t *testing.T) {
			client := connect(t, instance(workspace.URL(), `{`+keys+`, "httpMethod": "`+method+`", "httpHeaderName1": "X-Scope-OrgID"}`,
				append(twoKeys, "httpHeaderValue1", "tenant")...))
			if err := ask(forwarding(t.Context()), client); err != nil {
				t.Error(err)
			}
		})
	}

	refused := []struct {
		name, jsonData string
		secrets        []string
		kind           amp.Kind
	}{
		{"an unsigned request", `{}`, nil, amp.MissingCredentials},
		{"another region", `{` + keys + `, "sigV4Region": "eu-west-1"}`, twoKeys, amp.WrongRegion},
		{"another service", `{` + keys + `, "sigv4Service": "es"}`, twoKeys, amp.WrongService},
		{"an unknown key", `{` + keys + `}`, []string{"sigV4AccessKey", "OTHER", "sigV4SecretKey", "SECRET"}, amp.InvalidKey},
		{"a wrong secret", `{` + keys + `}`, []string{"sigV4AccessKey", "AKID", "sigV4SecretKey", "CANARY"}, amp.BadSignature},
	}
	for _, test := range refused {
		t.Run("AMP refuses "+test.name+", and the cause is told", func(t *testing.T) {
			expectKind(t, ask(t.Context(), connect(t, instance(workspace.URL(), test.jsonData, test.secrets...))), test.kind)
		})
	}

	t.Run("an auth type that Grafana doesn't allow is told", func(t *testing.T) {
		url, _ := recorder(t)
		client := connect(t, instance(url, `{"sigV4Auth": true, "sigV4Region": "us-east-1", "sigV4AuthType": "ec2_iam_role"}`))
		expectKind(t, ask(t.Context(), client), amp.CredentialsNotAllowed)
	})

	t.Run("a profile that doesn't exist is told", func(t *testing.T) {
		url, _ := recorder(t)
		client := connect(t, instance(url, `{"sigV4Auth": true, "sigV4Region": "us-east-1", "sigV4AuthType": "credentials", "sigV4Profile": "nobody's"}`))
		expectKind(t, ask(t.Context(), client), amp.NoProfile)
	})

	t.Run("AWS_CA_BUNDLE is told as the reason that nothing can be signed", func(t *testing.T) {
		url, _ := recorder(t)
		t.Setenv("AWS_CA_BUNDLE", writeCertificate(t))
		expectKind(t, ask(t.Context(), connect(t, instance(url, `{`+keys+`}`, twoKeys...))), amp.CABundle)
	})
}

func expectKind(t *testing.T, err error, want amp.Kind) {
	t.Helper()
	var fault *amp.Error
	if !errors.As(err, &fault) || fault.Kind != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func writeCertificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnectionHeaders(t *testing.T) {
	withoutCABundle(t)
	t.Run("forwarded headers stay behind without SigV4 as well", func(t *testing.T) {
		url, last := recorder(t)
		if err := ask(forwarding(t.Context()), connect(t, instance(url, `{}`))); err != nil {
			t.Fatal(err)
		}
		for name, values := range *last {
			if values[0] == "forwarded" {
				t.Errorf("%s arrived", name)
			}
		}
	})

	t.Run("basic auth of the settings arrives in place of what was forwarded", func(t *testing.T) {
		url, last := recorder(t)
		s := instance(url, `{}`, "basicAuthPassword", "pass")
		s.BasicAuthEnabled, s.BasicAuthUser = true, "user"
		if err := ask(forwarding(t.Context()), connect(t, s)); err != nil {
			t.Fatal(err)
		}
		user, password, _ := (&http.Request{Header: *last}).BasicAuth()
		if user != "user" || password != "pass" {
			t.Errorf("got %v", *last)
		}
	})

	t.Run("headers of the settings arrive, a bearer token among them", func(t *testing.T) {
		url, last := recorder(t)
		s := instance(url, `{"httpHeaderName1": "X-Scope-OrgID", "httpHeaderName2": "Authorization"}`, "httpHeaderValue1", "tenant", "httpHeaderValue2", "Bearer t")
		if err := ask(forwarding(t.Context()), connect(t, s)); err != nil {
			t.Fatal(err)
		}
		if last.Get("X-Scope-OrgID") != "tenant" || last.Get("Authorization") != "Bearer t" {
			t.Errorf("got %v", *last)
		}
	})

	t.Run("nulls that the SDK would panic on are harmless", func(t *testing.T) {
		url, _ := recorder(t)
		s := instance(url, `{"access": null, "url": null, "tlsAuth": true, "serverName": null, "httpHeaderName1": null, "basicAuthUser": null, `+keys+`, "sigV4Profile": null, "sigV4ExternalId": null}`,
			append(twoKeys, "httpHeaderValue1", "x")...)
		if err := ask(t.Context(), connect(t, s)); err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionBounds(t *testing.T) {
	withoutCABundle(t)
	t.Run("a redirect is not followed, and told with its host only", func(t *testing.T) {
		target, last := recorder(t)
		server := httptest.NewServer(http.RedirectHandler(target+"/login?token=CANARY", http.StatusTemporaryRedirect))
		t.Cleanup(server.Close)
		err := ask(t.Context(), connect(t, instance(server.URL, `{`+keys+`}`, twoKeys...)))
		expectKind(t, err, amp.Redirected)
		host := strings.TrimPrefix(target, "http://")
		if !strings.Contains(err.Error(), "redirected to "+host+")") || len(*last) != 0 {
			t.Errorf("got %v; the target saw %v", err, *last)
		}
	})

	for _, host := range []string{"169.254.169.254", "169.254.170.2", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]"} {
		t.Run("the metadata service at "+host+" is not dialed", func(t *testing.T) {
			err := ask(t.Context(), connect(t, instance("http://"+host, `{}`)))
			expectKind(t, err, amp.Unreachable)
			if err != nil && !strings.Contains(err.Error(), "link-local addresses are refused") {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("a slow answer ends with queryTimeout", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(server.Close)
		t.Cleanup(func() { close(release) })
		expectKind(t, ask(t.Context(), connect(t, instance(server.URL, `{"queryTimeout": "50ms"}`))), amp.Timeout)
	})

	t.Run("a CA certificate of the settings is used, and a bad one refused", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, noResult)
		}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		if err := ask(t.Context(), connect(t, instance(server.URL, `{"tlsAuthWithCACert": true}`, "tlsCACert", certificate))); err != nil {
			t.Error(err)
		}
		expectKind(t, ask(t.Context(), connect(t, instance(server.URL, `{}`))), amp.Unreachable)

		bad := instance(server.URL, `{"tlsAuthWithCACert": true}`, "tlsCACert", "no certificate")
		if _, err := NewHTTPClient(t.Context(), bad, parse(t, bad)); err == nil || !strings.HasPrefix(err.Error(), "connection settings: ") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("closing idle connections closes them", func(t *testing.T) {
		closed := make(chan struct{}, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, noResult)
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- struct{}{}
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		s := instance(server.URL, `{}`)
		parsed := parse(t, s)
		client, err := NewHTTPClient(t.Context(), s, parsed)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(t.Context(), amp.New(client, parsed.URL, amp.Options{})); err != nil {
			t.Fatal(err)
		}
		client.CloseIdleConnections()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Error("the connection stays open")
		}
	})
}
