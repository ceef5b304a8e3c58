import type { Reader } from './readers.ts'

export interface Setting<T> {
  readonly reader: Reader<T>
  readonly defaultText: string
  readonly defaultValue: T
  /** What the setting does, its unit, and when to change it. */
  readonly description: string
  /** The value contains a password, and is not shown. */
  readonly isSecret: boolean
}

/** Throws TypeError if the default is not a value of the setting. */
export function setting<T>(
  defaultText: string,
  reader: Reader<T>,
  description: string,
  isSecret = false,
): Setting<T> {
  const defaultValue = reader.read(defaultText)
  if (defaultValue === undefined) throw new TypeError(`the default ${defaultText} is not ${reader.accepts}`)
  return { reader, defaultText, defaultValue, description, isSecret }
}
