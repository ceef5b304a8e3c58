import { loadSignInInfo } from './sign-in-info.ts'

let serviceSizes: Promise<readonly string[]> | null = null

/** The sizes of the service; those that always exist if they are unknown. */
export function loadServiceSizes(): Promise<readonly string[]> {
  serviceSizes ??= loadSignInInfo().then((info) => {
    // Requested again if it failed.
    if (info === null) serviceSizes = null
    return info?.sizes ?? ['thumb=400', 'medium=1600']
  })
  return serviceSizes
}
