import { documented } from './run.ts'

const variable: readonly (readonly [RegExp, string])[] = [
  [/(?<="next_cursor": ?")[\w-]+/g, '«cursor»'],
  [/\b[0-9a-z]{26}(?:[0-9a-z]{2})?\b/g, '«id»'],
  [/\btok_[0-9a-z]{12}\b/g, '«token»'],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '«request»'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '«time»'],
]

/** Parses a JSON text with placeholders for the values that differ between runs: ids, times, the service's URL. */
export function stableJson(json: string, url: string): unknown {
  const stable = variable.reduce((text, [pattern, name]) => text.replaceAll(pattern, name), json)
  return JSON.parse(stable.replaceAll(url, documented))
}
