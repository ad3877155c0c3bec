package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/grafana/grafana-aws-sdk/pkg/awsauth"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"
)

// NewHTTPClient gives the client of one data source: it signs, if the settings say so, with credentials that it caches,
// follows no redirects, sends no header that came with a user's request, and never dials the host's metadata services.
// Make one per instance, and close its idle connections with it.
func NewHTTPClient(ctx context.Context, s backend.DataSourceInstanceSettings, parsed Settings) (*http.Client, error) {
	options, err := httpOptions(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("connection settings: %w", err)
	}
	// The AMP client's own deadline comes first: it tells a slow query from a server that can't be reached.
	options.Timeouts.Timeout = parsed.QueryTimeout + graceful
	options.SigV4 = parsed.SigV4.config()
	// The signer comes last: what is changed after it spoils the signature.
	options.Middlewares = append(httpclient.DefaultMiddlewares(),
		httpclient.NamedMiddlewareFunc("strip-forwarded-headers", stripForwarded),
		awsauth.NewSigV4Middleware(),
	)
	var transport *http.Transport
	options.ConfigureTransport = func(o httpclient.Options, t *http.Transport) {
		t.DialContext = (&net.Dialer{
			Timeout:   o.Timeouts.DialTimeout,
			KeepAlive: o.Timeouts.KeepAlive,
			Control:   refuseMetadataServices,
		}).DialContext
		transport = t
	}
	client, err := httpclient.New(options)
	if err != nil {
		return nil, fmt.Errorf("connection settings: %w", err)
	}
	client.Transport = closer{client.Transport, transport}
	// The redirect itself is the answer: the AMP client tells where it leads.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// graceful is how much longer than a query a connection lives.
const graceful = 5 * time.Second

// httpOptions hides nulls from the SDK, which panics on them.
func httpOptions(ctx context.Context, s backend.DataSourceInstanceSettings) (httpclient.Options, error) {
	values, err := parseJSONData(s.JSONData)
	if err != nil {
		return httpclient.Options{}, err
	}
	if s.JSONData, err = json.Marshal(values); err != nil {
		return httpclient.Options{}, err
	}
	return s.HTTPClientOptions(ctx)
}

func (s SigV4) config() *httpclient.SigV4Config {
	if !s.Enabled {
		return nil
	}
	return &httpclient.SigV4Config{
		AuthType:      s.AuthType,
		Profile:       s.Profile,
		Service:       s.Service,
		AccessKey:     s.AccessKey,
		SecretKey:     s.SecretKey,
		SessionToken:  s.SessionToken,
		AssumeRoleARN: s.AssumeRoleARN,
		ExternalID:    s.ExternalID,
		Region:        s.Region,
	}
}

// closer lets http.Client close the connections below the middlewares, which know no way to.
type closer struct {
	http.RoundTripper
	transport *http.Transport
}

// CloseIdleConnections is called by the http.Client's method of that name.
func (c closer) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// stripForwarded drops whatever identifies a user of Grafana, and whatever would overwrite a part of the signature. What
// the settings themselves say is put back.
func stripForwarded(options httpclient.Options, next http.RoundTripper) http.RoundTripper {
	return httpclient.RoundTripperFunc(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		for name := range r.Header {
			if isForwarded(name) {
				delete(r.Header, name)
			}
		}
		if options.BasicAuth != nil {
			r.SetBasicAuth(options.BasicAuth.User, options.BasicAuth.Password)
		}
		for name, values := range options.Header {
			if isForwarded(name) {
				r.Header[name] = values
			}
		}
		return next.RoundTrip(r)
	})
}

func isForwarded(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Authorization", "Cookie", "Forwarded", "Host", "X-Real-Ip",
		backend.OAuthIdentityIDTokenHeaderName, backend.GrafanaUserSignInTokenHeaderName, "X-Grafana-User":
		return true
	}
	return strings.HasPrefix(name, "X-Amz-") || strings.HasPrefix(name, "X-Forwarded-")
}

var errMetadataService = errors.New("link-local addresses are refused, as the host's credentials are served there")

// metadataServices are EC2's and EKS's over IPv6, which are not link-local.
var metadataServices = netip.MustParsePrefix("fd00:ec2::/32")

// refuseMetadataServices looks at the address that a name has resolved to, so that no name leads around it. The AWS SDK
// has its own client for what it asks of these services.
func refuseMetadataServices(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := target.Addr().WithZone("")
	if ip.IsLinkLocalUnicast() || metadataServices.Contains(ip) {
		return errMetadataService
	}
	return nil
}
