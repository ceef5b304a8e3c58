/** Characters. */
export const maxTokenName = 200

/** What a name of a token must be, for messages. */
export const tokenNameRule = `A name has at most ${maxTokenName} characters, and no control characters.`

export const isTokenName = (name: string): boolean =>
  name.length <= maxTokenName && name.isWellFormed() && !/\p{Cc}/u.test(name)
