import { isDeepStrictEqual } from 'node:util'
import type { RateSettings } from '../http/limits.ts'
import type { Config } from './config.ts'

/** The settings that a running service takes over (docs/interface.md O13). All others need a restart. */
export interface ReloadableSettings extends RateSettings {
  readonly corsOrigins: readonly string[]
  readonly readOnly: boolean
  readonly logLevel: Config['logLevel']
}

export const reloadableOf = (config: Config): ReloadableSettings => ({
  tokenRate: config.tokenRate,
  addressRate: config.addressRate,
  authFailureRate: config.authFailureRate,
  corsOrigins: config.corsOrigins,
  readOnly: config.readOnly,
  logLevel: config.logLevel,
})

/** What a reload does with settings that differ from those of the start or of the last reload. */
export interface SettingChanges {
  /** Names of members of Config. */
  readonly applied: readonly string[]
  readonly needRestart: readonly string[]
}

/** Compares settings. Origins are taken over only if the header `Vary`, which caches have stored, stays the same. */
export function compareSettings(before: Config, after: Config): SettingChanges {
  const changed = Object.entries(after).filter(([name, value]) => {
    const [, old] = Object.entries(before).find(([other]) => other === name) ?? []
    return !isDeepStrictEqual(value, old)
  })
  const isReloadable = (name: string) =>
    name === 'corsOrigins'
      ? kindOfOrigins(before.corsOrigins) === kindOfOrigins(after.corsOrigins)
      : name in reloadableOf(after)
  const names = changed.map(([name]) => name)
  return {
    applied: names.filter(isReloadable),
    needRestart: names.filter((name) => !isReloadable(name)),
  }
}

/** The settings before a reload, with those that it applies. */
export const takeOver = (before: Config, after: Config, applied: readonly string[]): Config => ({
  ...before,
  ...Object.fromEntries(Object.entries(after).filter(([name]) => applied.includes(name))),
})

const kindOfOrigins = (origins: readonly string[]): 'none' | 'any' | 'some' =>
  origins.includes('*') ? 'any' : origins.length === 0 ? 'none' : 'some'
