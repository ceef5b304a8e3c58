const shape = /^[a-z0-9][a-z0-9-]{0,62}$/

/** What `isBucketName` accepts, to be shown beside a refusal. */
export const bucketNameRule =
  'A bucket name has 1 to 63 lower-case letters, digits and hyphens, and does not start with a hyphen.'

/** The one guard for bucket names given by users. */
export const isBucketName = (name: string): boolean => shape.test(name)
