// The demo: the built plugin, run as Grafana runs it, answers what GPUs cost on an embedded AMP with synthetic EKS
// clusters, or on a real one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amptest"
	"github.com/gpucost/gpucost-amp-datasource/pkg/host"
)

// options are the command's flags.
type options struct {
	once   bool
	listen string
	url    string
	region string
	price  float64
	slices int
	plugin string
}

func main() {
	var o options
	flag.BoolVar(&o.once, "once", false, "print the tables once and exit")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:19090", "address of the embedded AMP")
	flag.StringVar(&o.url, "url", "", "ask this AMP workspace or Prometheus instead of the embedded one")
	flag.StringVar(&o.region, "region", "", "sign for this AWS region, with the usual AWS credentials (an AMP URL tells it by itself)")
	flag.Float64Var(&o.price, "price", 12, "USD per GPU and hour")
	flag.IntVar(&o.slices, "slices", 0, "slices per GPU on nodes whose labels don't tell (default: 7 on the embedded AMP, else 1)")
	flag.StringVar(&o.plugin, "plugin", "", "the plugin's binary (default: the one in dist/ for this platform)")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("%q is no flag: see -help", flag.Arg(0)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
		stop()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "demo: "+err.Error())
	os.Exit(1)
}

// refresh is how often the tables are printed anew: as often as the synthetic clusters are scraped.
const refresh = 30 * time.Second

func run(ctx context.Context, o options) error {
	views, environment, err := prepare(ctx, &o)
	if err != nil {
		return err
	}
	plugin, err := host.Start(o.binary(), environment, os.Stderr)
	if err != nil {
		return fmt.Errorf("%w (build it first: go tool mage build)", err)
	}
	defer plugin.Stop()
	for {
		for _, v := range views {
			if err := v.print(ctx, plugin); err != nil {
				return err
			}
		}
		if o.once {
			return nil
		}
		fmt.Printf("\nAgain in %s; Ctrl-C ends.\n", refresh)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(refresh):
		}
	}
}

func (o options) binary() string {
	if o.plugin != "" {
		return o.plugin
	}
	name := fmt.Sprintf("gpx_gpucost_%s_%s", runtime.GOOS, runtime.GOARCH)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join("dist", name)
}

// prepare returns what to show, and the environment that the plugin gets: none, as from Grafana, but for real AWS
// credentials.
func prepare(ctx context.Context, o *options) ([]view, []string, error) {
	if o.url != "" {
		return []view{realView(*o)}, os.Environ(), nil
	}
	if o.slices == 0 {
		o.slices = 7
	}
	server, err := embed(ctx, *o)
	if err != nil {
		return nil, nil, err
	}
	return embeddedViews(*o, server.URL()), nil, nil
}

// history is how much the embedded AMP knows of the time before it started.
const history = 7 * 24 * time.Hour

var keys = amptest.Credentials{AccessKeyID: "AKIDEMO", SecretAccessKey: "demo"}

// embed starts the embedded AMP, fills it with a week of two clusters, and lets both go on until ctx ends.
func embed(ctx context.Context, o options) (*amptest.Server, error) {
	server, err := amptest.New(amptest.Options{Credentials: keys})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Listen(o.listen); err != nil {
		return nil, fmt.Errorf("%w (-listen chooses another)", err)
	}
	fmt.Printf("Embedded AMP on %s (region us-east-1, access key %s).\n", server.URL(), keys.AccessKeyID)
	from := time.Now().Add(-history)
	for _, cluster := range []amptest.Cluster{amptest.PublishedCluster(), amptest.RichCluster(1)} {
		filled := make(chan error, 1)
		fmt.Printf("A week of cluster %s:", cluster.Name())
		tenths := 0
		progress := func(done float64) {
			for ; tenths < int(done*10); tenths++ {
				fmt.Printf(" %d %%", (tenths+1)*10)
			}
			if done >= 1 {
				fmt.Println()
				filled <- nil
			}
		}
		go func() {
			if err := server.Follow(ctx, cluster, from, progress); err != nil {
				filled <- err
			}
		}()
		select {
		case err := <-filled:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return server, nil
}
