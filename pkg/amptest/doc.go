// Package amptest is an embedded Amazon Managed Service for Prometheus (AMP):
// Prometheus' own storage and engine behind AMP's URLs, limits, errors, request
// signatures and billing counter. Tests and the demo command query it as they
// would query the real service. It fills from a script (Server.Load), from
// samples (Server.Append) or from a synthetic cluster whose true cost is known
// without any PromQL (Server.Follow).
package amptest
