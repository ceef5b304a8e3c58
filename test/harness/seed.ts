import { runSeed } from '../../bench/seed.ts'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { databaseSettings } from './database.ts'
import type { SharedServer } from './server.ts'

/** Fills a bucket with small files while the server is running, or before its first start. The arguments are those of `npm run seed`. */
export async function seed({ data }: Pick<SharedServer, 'data'>, ...args: string[]) {
  return runSeed(args, readConfig({ ...(await databaseSettings(data)), MEDIABUCKET_DATA: data }).config)
}
