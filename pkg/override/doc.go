// Package override makes an object differ from cluster to cluster, as override
// policies say (spec: behaviour/07). It only computes: what it is given stays as
// it is, and what it returns is whole, or there was an error.
package override
