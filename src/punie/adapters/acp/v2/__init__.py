"""ACP v2, a draft: the same sessions as v1's in the words of its second version. Loaded where v2 was agreed on."""
