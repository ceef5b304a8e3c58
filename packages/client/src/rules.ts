// The rules of a service that a program can check before it sends a request: @mediabucket/client/rules. The service itself, its command line
// and its gallery use them too.

export { isLabelKey, isLabelValue, maxLabels, maxLabelValue, maxSelectedLabels } from './label-rules.ts'
export {
  type ChangeType,
  type ItemKind,
  itemKinds,
  type ListOrder,
  listOrders,
  maxIds,
  maxListLimit,
} from './list-rules.ts'
export {
  addressName,
  afterAllPaths,
  cleanFilename,
  cleanPath,
  foldName,
  longestName,
  longestPath,
  maxNameKey,
  maxSearchLength,
  maxSearchTerms,
  nameKey,
} from './name-rules.ts'
export { maxAltText, maxCaption, maxNote, maxTokenName } from './text-rules.ts'
