/** A header of the OpenAPI document. */
export interface HeaderDescription {
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example: string
  /** Whether a response may lack it; its description says when. */
  readonly optional?: true
}

export const text = { type: 'string' }
export const wholeNumber = { type: 'string', pattern: '^(0|[1-9]\\d*)$' }
