// Package price holds the sources that prices come from.
package price

import (
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/cost"
)

// Flat is one price for every GPU at any time, exactly as typed in the settings.
type Flat struct {
	USDPerGPUHour *float64 // nil = not set: every price is unknown
}

// Price implements cost.PriceBook.
func (f Flat) Price(cost.Node, time.Time) (cost.USDPerGPUHour, bool) {
	if f.USDPerGPUHour == nil {
		return 0, false
	}
	return cost.USDPerGPUHour(*f.USDPerGPUHour), true
}

// Source implements cost.PriceBook.
func (Flat) Source() string { return "flat" }

// Split implements cost.PriceBook: a flat price is per GPU.
func (Flat) Split() string { return "" }
