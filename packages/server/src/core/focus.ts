import { isObject, parseJson } from './json.ts'

/** The point of a picture that `cover` sizes keep in their frame, from 0 to 1 of the width and the height of the picture as it is displayed. */
export interface Focus {
  readonly x: number
  readonly y: number
}

/** Items store both coordinates in one number, in this many steps each. */
const steps = 10_000

export const maxStoredFocus = steps * (steps + 1) + steps

/** The number that items store. */
export const storedFocus = ({ x, y }: Focus): number =>
  Math.round(x * steps) * (steps + 1) + Math.round(y * steps)

/** Reads a number of storedFocus. */
export const focusOf = (stored: number): Focus => ({
  x: Math.floor(stored / (steps + 1)) / steps,
  y: (stored % (steps + 1)) / steps,
})

/** What a focus accepts, in JSON and in texts. */
export const focusRule =
  'x and y, numbers from 0 to 1 of the width and the height of the picture as it is displayed'
export const focusTextRule = `${focusRule}: a JSON object ({"x": 0.3, "y": 0.5}), or both with a comma (0.3,0.5)`

const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1

/** Reads a JSON value; undefined if it is not a focus. */
export function parseFocus(value: unknown): number | undefined {
  if (!isObject(value)) return undefined
  const { x, y, ...others } = value
  if (!isShare(x) || !isShare(y) || Object.keys(others).length > 0) return undefined
  return storedFocus({ x, y })
}

const pair = /^ *(\d(?:\.\d{1,20})?|\.\d{1,20}) *, *(\d(?:\.\d{1,20})?|\.\d{1,20}) *$/

/** Reads the text of a header, a field or an option; undefined if it is not a focus. */
export function parseFocusText(text: string): number | undefined {
  const [, x, y] = pair.exec(text) ?? []
  if (x !== undefined && y !== undefined) return parseFocus({ x: Number(x), y: Number(y) })
  return text.length > 200 ? undefined : parseFocus(parseJson(text))
}
