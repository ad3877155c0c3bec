// Package host runs a built plugin as Grafana does: as a process of its own, over gRPC. It serves tests and the demo.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/grpcplugin"
	"github.com/grafana/grafana-plugin-sdk-go/genproto/pluginv2"
	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// maxMessage is what Grafana takes of a plugin in one message.
const maxMessage = 16 << 20

// Plugin is a running plugin.
type Plugin struct {
	client    *goplugin.Client
	data      pluginv2.DataClient
	health    pluginv2.DiagnosticsClient
	resources pluginv2.ResourceClient
}

// Start runs the plugin binary with just these environment variables, as Grafana does, and shakes hands. Its log goes to
// logs.
func Start(binary string, environment []string, logs io.Writer) (*Plugin, error) {
	command := exec.Command(binary) //nolint:noctx // go-plugin ends it
	command.Env = environment
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion:  grpcplugin.ProtocolVersion,
			MagicCookieKey:   grpcplugin.MagicCookieKey,
			MagicCookieValue: grpcplugin.MagicCookieValue,
		},
		VersionedPlugins: map[int]goplugin.PluginSet{grpcplugin.ProtocolVersion: {
			"diagnostics": &grpcplugin.DiagnosticsGRPCPlugin{},
			"resource":    &grpcplugin.ResourceGRPCPlugin{},
			"data":        &grpcplugin.DataGRPCPlugin{},
		}},
		Cmd:              command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: logs, Level: hclog.Warn}),
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage))},
	})
	p := &Plugin{client: client}
	if err := p.connect(); err != nil {
		client.Kill()
		return nil, fmt.Errorf("start plugin %s: %w", binary, err)
	}
	return p, nil
}

func (p *Plugin) connect() error {
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	if p.data, err = dispense[pluginv2.DataClient](protocol, "data"); err != nil {
		return err
	}
	if p.health, err = dispense[pluginv2.DiagnosticsClient](protocol, "diagnostics"); err != nil {
		return err
	}
	p.resources, err = dispense[pluginv2.ResourceClient](protocol, "resource")
	return err
}

func dispense[T any](protocol goplugin.ClientProtocol, name string) (T, error) {
	var none T
	raw, err := protocol.Dispense(name)
	if err != nil {
		return none, err
	}
	client, ok := raw.(T)
	if !ok {
		return none, fmt.Errorf("the plugin's %s is a %T", name, raw)
	}
	return client, nil
}

// Stop ends the process.
func (p *Plugin) Stop() { p.client.Kill() }

// Query sends the queries of a panel.
func (p *Plugin) Query(ctx context.Context, req *backend.QueryDataRequest) (*backend.QueryDataResponse, error) {
	answer, err := p.data.QueryData(ctx, backend.ToProto().QueryDataRequest(req))
	if err != nil {
		return nil, err
	}
	return backend.FromProto().QueryDataResponse(answer)
}

// Health runs "Save & test".
func (p *Plugin) Health(ctx context.Context, pc backend.PluginContext) (*backend.CheckHealthResult, error) {
	answer, err := p.health.CheckHealth(ctx, &pluginv2.CheckHealthRequest{PluginContext: backend.ToProto().PluginContext(pc)})
	if err != nil {
		return nil, err
	}
	return backend.FromProto().CheckHealthResponse(answer), nil
}

// Call makes a resource call, whose path may carry a query.
func (p *Plugin) Call(ctx context.Context, req *backend.CallResourceRequest) (*backend.CallResourceResponse, error) {
	stream, err := p.resources.CallResource(ctx, backend.ToProto().CallResourceRequest(req))
	if err != nil {
		return nil, err
	}
	whole := &backend.CallResourceResponse{}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return nil, err
		}
		r := backend.FromProto().CallResourceResponse(part)
		whole.Body = append(whole.Body, r.Body...)
		if r.Status != 0 {
			whole.Status, whole.Headers = r.Status, r.Headers
		}
	}
}

// Context is what Grafana sends along for a data source that was last saved at some time.
func Context(pluginID string, settings backend.DataSourceInstanceSettings) backend.PluginContext {
	if settings.Updated.IsZero() {
		settings.Updated = time.Unix(1, 0)
	}
	return backend.PluginContext{Namespace: "default", PluginID: pluginID, DataSourceInstanceSettings: &settings}
}
