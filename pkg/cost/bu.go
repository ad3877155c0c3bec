package cost

import "regexp"

// BusinessUnits maps what Kubernetes knows to business units.
type BusinessUnits struct {
	Rules []Rule // first match wins; without rules the namespace is the business unit
}

// Rule gives the namespaces that match to a business unit.
type Rule struct {
	BusinessUnit string
	Namespaces   *regexp.Regexp // anchored
}

// Of returns the business unit of a namespace, or UnallocatedRow.
func (b BusinessUnits) Of(namespace string) string {
	if len(b.Rules) == 0 {
		return namespace
	}
	for _, r := range b.Rules {
		if r.Namespaces.MatchString(namespace) {
			return r.BusinessUnit
		}
	}
	return UnallocatedRow
}
