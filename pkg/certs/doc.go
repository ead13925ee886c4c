// Package certs keeps a directory of keys and certificates in the state that a
// list of Specs describes.
//
// A tree of certificates is data: a Spec for each authority and each leaf. Dir
// compares it with the files (Plan) and writes what is missing or no longer
// right (Ensure). Three rules govern what may happen to a file:
//
//   - What is right stays, byte for byte.
//   - A leaf that is not right is made anew; nothing else in the tree depends on it.
//   - An authority, or a service account key, is never made anew: everything it
//     signed would be worthless. When it is unusable the answer is an
//     UnusableError that says how to get out.
//
// Plan decides everything, in memory, before Ensure writes the first byte. Each
// file is written whole (package atomicfile), a generated key before its
// certificate. So an interrupted Ensure leaves at most keys that no certificate
// vouches for yet, and the next one completes the tree.
//
// Files: <name>.crt (0644) and <name>.key (0600, PKCS #8) for a certificate,
// <ca>-chain.pem (0644) for the parents of an authority that is not a root,
// <name>.key and <name>.pub for a bare key pair. Directories are made with 0700.
// Names come from the caller (spec: cli/init.md 5). Unlike there, keys are ECDSA
// P-256, a certificate is good for what its Spec says alone, and the service
// account key is no certificate's key.
package certs
