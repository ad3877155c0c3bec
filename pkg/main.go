// The GPU Cost data source: a Grafana backend plugin.
package main

import (
	"os"

	"github.com/grafana/grafana-plugin-sdk-go/backend/datasource"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"

	"github.com/gpucost/gpucost-amp-datasource/pkg/plugin"
)

func main() {
	if err := datasource.Manage(plugin.ID, plugin.NewInstance, datasource.ManageOpts{}); err != nil {
		log.DefaultLogger.Error("The plugin ended", "error", err)
		os.Exit(1)
	}
}
