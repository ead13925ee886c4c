// Package usage sums up what the nodes of a member cluster have and what its
// pods ask for, while both stream by.
//
// Of each pod a record of some 100 bytes is kept, of each node a little more,
// and never the object: so a member with 100,000 pods costs a few megabytes.
// The stream is read here rather than by a reflector of client-go, because that
// gathers the whole list, of whole objects where the server cannot stream it,
// before it hands anything on.
//
// What is known stays known: a connection that breaks, a list that fails, or one
// that is under way change nothing but what they have brought.
package usage
