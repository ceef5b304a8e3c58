import { describeOnPostgres } from './suites.ts'

describeOnPostgres(
  'listing',
  'items',
  'edit',
  'delete-many',
  'trash',
  'token',
  'authentication',
  'quotas',
  'issuer',
)
