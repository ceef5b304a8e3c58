import { documented } from './run.ts'

const changing: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-z]{26}(?:[0-9a-z]{2})?\b/g, '«id»'],
  [/\btok_[0-9a-z]{12}\b/g, '«token»'],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '«request»'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '«time»'],
]

/** A JSON text without the values that differ between runs: ids, times, the address of the service. */
export function settled(json: string, url: string): unknown {
  const same = changing.reduce((text, [pattern, name]) => text.replaceAll(pattern, name), json)
  return JSON.parse(same.replaceAll(url, documented))
}
