// Package openapi has the OpenAPI schema of the API types that an aggregated
// API server serves, made from their comments by tools/generate.sh.
package openapi
