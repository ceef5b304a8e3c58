const shape = /^[a-z0-9][a-z0-9-]{0,62}$/

/** The rule of `isBucketName`, for help and error messages. */
export const bucketNameRule =
  'A bucket name has 1 to 63 lower-case letters, digits and hyphens, and does not start with a hyphen.'

/** Validates every bucket name that a user enters. */
export const isBucketName = (name: string): boolean => shape.test(name)
