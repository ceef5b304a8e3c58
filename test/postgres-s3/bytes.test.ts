import { describeOnPostgresAndS3 } from './suites.ts'

// Not the suites of issuers, private buckets, signed URLs and the limits of tokens: the catalog's contract has their rows on both engines,
// and the rest of them reads headers and tokens.
describeOnPostgresAndS3('listing', 'listing-under-change', 'items', 'trash', 'bytes', 'variants', 'changes')
